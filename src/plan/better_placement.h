// SPDX-License-Identifier: Apache-2.0
// Nodes in the order of their switches, where a cluster places them in another.
#pragma once

#include <optional>
#include <string>

#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

class Planner;
struct DataFolders;
struct LayoutChoice;

struct BetterPlacement {
  std::string place;  // as "cluster.place" takes it
  Seconds step_time;
};

// Nodes and layout are those of `choice`. Nothing where nodes stand in order, where that makes the
// step of `stated` no shorter, and where failed parts are named by the order there is.
Result<std::optional<BetterPlacement>> better_placement(const Planner& planner,
                                                        const LayoutChoice& choice, Seconds stated,
                                                        const DataFolders& folders);

}  // namespace stepcast
