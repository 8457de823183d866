// SPDX-License-Identifier: Apache-2.0
// What a search may vary: one entry per layout key (plan/layout_dimensions.cpp). The search knows
// no key by name; a new dimension is a new entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/scenario_input.h"

namespace stepcast {

struct LayoutDimension {
  using Values = std::vector<std::int64_t>;

  const char* path;  // "layout.tp"
  bool (*stated)(const LayoutInput&);
  // All values behind a prefix: a scenario with the dimensions before this one set, the others at
  // their defaults. Legality is not their business.
  Values (*values)(const Scenario& prefix);
  // Those that a forecast tells apart; of equal ones the first.
  Values (*distinct)(const Scenario& prefix);
  bool varies;  // `values` differs from prefix to prefix
  void (*set)(LayoutInput&, std::optional<std::int64_t>);
  std::int64_t (*of)(const Layout&);  // what a resolved layout has
  std::string (*text)(std::int64_t);  // as --fix reads it
};

// In the order of the tree: what others depend on first, keys without dependants last.
const std::vector<LayoutDimension>& layout_dimensions();

}  // namespace stepcast
