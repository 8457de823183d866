// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that collectives of a graph run in. Every group is held once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

// Groups by name, as ASTRA-sim's `comm-group-configuration` has them: {"1": [0, 1], "2": [2, 3]}.
using NamedRanks = std::map<std::string, std::vector<std::int32_t>>;

// Errors: no such file, names of no ranks, a rank that stands twice.
Result<NamedRanks> read_rank_groups(const std::string& file);

// The file for it; ASTRA-sim takes numbers above 0 as names.
std::string rank_groups_text(const std::vector<std::vector<std::int32_t>>& groups);

// Gives each different list of ranks a number.
class GroupTable {
 public:
  explicit GroupTable(std::vector<std::vector<std::int32_t>>& groups) : groups_(groups) {}
  std::int32_t number_of(const std::vector<std::int32_t>& ranks);
  std::int32_t of_all(std::int32_t ranks);  // 0 to `ranks` - 1

 private:
  std::vector<std::vector<std::int32_t>>& groups_;
  std::map<std::vector<std::int32_t>, std::int32_t> known_;
  std::int32_t all_ = -1;
};

}  // namespace stepcast
