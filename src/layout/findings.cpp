// SPDX-License-Identifier: Apache-2.0
#include "layout/findings.h"

#include <algorithm>
#include <utility>

namespace stepcast {
namespace {

// The paths begin alike: where they end is looked at first.
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

KeyPaths::KeyPaths(std::vector<std::string> paths) {
  for (std::string& path : paths) add(std::move(path));
}

void KeyPaths::add(std::string path) {
  bits_ |= KeyPath(path).bits();
  paths_.push_back(std::move(path));
}

bool KeyPaths::are_around_or_inside(std::string_view path) const {
  return std::ranges::any_of(
      paths_, [&](const std::string& own) { return one_is_around_the_other(own, path); });
}

Findings::Findings(const Errors& earlier) {
  for (const Error& error : earlier) {
    // An unknown key does not make any other value wrong.
    if (error.code != ErrorCode::kUnknownKey) distrust(error.path);
  }
}

void Findings::distrust(std::string path) { distrusted_.add(std::move(path)); }

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
