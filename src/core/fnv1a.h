// SPDX-License-Identifier: Apache-2.0
// FNV-1a of 64 bits (Fowler, Noll and Vo): the same number on every machine, unlike std::hash.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace stepcast
