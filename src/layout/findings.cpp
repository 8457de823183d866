// SPDX-License-Identifier: Apache-2.0
#include "layout/findings.h"

#include <span>
#include <utility>

namespace stepcast {
namespace {

// "layout" is around "layout.tp" and "layout.stage_layers[2]", not around "layouts". Searches ask
// this millions of times, of paths that begin alike: where they end is looked at first.
inline bool one_is_around_the_other(std::string_view a, std::string_view b) {
  const auto& [outer, inner] = a.size() <= b.size() ? std::pair(a, b) : std::pair(b, a);
  if (outer.empty()) return true;
  if (inner[outer.size() - 1] != outer.back()) return false;
  if (inner.size() > outer.size() && inner[outer.size()] != '.' && inner[outer.size()] != '[') {
    return false;
  }
  return inner.starts_with(outer);
}

}  // namespace

Findings::Findings(const Errors& earlier) {
  for (const Error& error : earlier) {
    // An unknown key does not make any other value wrong.
    if (error.code != ErrorCode::kUnknownKey) distrust(error.path);
  }
}

void Findings::distrust(std::string path) { distrusted_.push_back(std::move(path)); }

bool Findings::trusts(std::initializer_list<std::string_view> paths) const {
  for (const std::span<const std::string> list :
       {unknown_, std::span<const std::string>(distrusted_)}) {
    for (const std::string_view bad : list) {
      for (const std::string_view path : paths) {
        if (one_is_around_the_other(bad, path)) return false;
      }
    }
  }
  return true;
}

void Findings::illegal(std::string path, std::string message, std::string hint) {
  distrust(path);
  errors_.push_back(
      {ErrorCode::kIllegal, std::move(message), "", std::move(path), std::move(hint)});
}

void Findings::unsupported(std::string path, std::string message, std::string hint) {
  errors_.push_back({ErrorCode::kNotSupported, std::move(message) + " not supported yet", "",
                     std::move(path), std::move(hint)});
}

void Findings::missing(std::string path, std::string message, std::string hint) {
  distrust(path);
  errors_.push_back(
      {ErrorCode::kMissingKey, std::move(message), "", std::move(path), std::move(hint)});
}

}  // namespace stepcast
