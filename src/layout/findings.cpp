// SPDX-License-Identifier: Apache-2.0
#include "layout/findings.h"

#include <algorithm>
#include <cstring>
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

// Paths that begin otherwise are not around each other: a bit by the first nine characters, all
// bits of a shorter path.
std::uint64_t begin_bits(std::string_view path) {
  if (path.size() < 9) return ~std::uint64_t{0};
  std::uint64_t begin;  // the second to the ninth
  std::memcpy(&begin, path.data() + 1, sizeof begin);
  return std::uint64_t{1} << (begin * 0x9e3779b97f4a7c15 >> 58);
}

}  // namespace

KeyPaths::KeyPaths(std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (const std::string& path : paths_) begins_ |= begin_bits(path);
}

void KeyPaths::add(std::string path) {
  begins_ |= begin_bits(path);
  paths_.push_back(std::move(path));
}

bool KeyPaths::concern(std::string_view path) const {
  return (begins_ & begin_bits(path)) != 0 && std::ranges::any_of(paths_, [&](const auto& own) {
           return one_is_around_the_other(own, path);
         });
}

Findings::Findings(const Errors& earlier) {
  for (const Error& error : earlier) {
    // An unknown key does not make any other value wrong.
    if (error.code != ErrorCode::kUnknownKey) distrust(error.path);
  }
}

void Findings::distrust(std::string path) { distrusted_.add(std::move(path)); }

bool Findings::trusts(std::initializer_list<std::string_view> paths) const {
  return std::ranges::none_of(paths, [&](std::string_view path) {
    return distrusted_.concern(path) || (unknown_ != nullptr && unknown_->concern(path));
  });
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
