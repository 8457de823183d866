// SPDX-License-Identifier: Apache-2.0
// The count of a space: how many layouts it has, and why others are none of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/error.h"

namespace stepcast {

// Why a subtree is left out: the key to blame and how it reads the first time.
struct RuleCount {
  std::int64_t subtrees = 0;
  Error example;
};

struct SpaceCount {
  std::int64_t legal = 0;                  // layouts that the rules allow, duplicates left out
  std::map<std::string, RuleCount> rules;  // by key
  void add(const SpaceCount& more);
};

// The rules that have refused every layout of a space that has none.
Errors refusals(const SpaceCount& count);

}  // namespace stepcast
