// SPDX-License-Identifier: Apache-2.0
// The choices that NCCL makes for the traffic of a step. They come in steps: a link that is one
// percent slower may cost some percent of a step, because NCCL takes other channels then.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/nccl_tuner.h"
#include "layout/axis_group.h"
#include "operation/message.h"

namespace stepcast {

struct Pricing;
struct Scenario;

// The choice for one message of one process group, or for one from a stage to the next.
struct TrafficChoice {
  AxisGroup group;  // empty: from one stage to another
  Message message;
  std::int64_t ranks = 2;
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  std::int64_t channels = 1;
  // Its communicator has these rings and NVLS heads (by the search of its graph) and channels that
  // run, and takes these algorithms for messages without end.
  std::vector<std::int64_t> communicator = {};
  bool operator==(const TrafficChoice&) const = default;
};

// One for each message of each group and pair that the program sends, always in the same order.
std::vector<TrafficChoice> traffic_choices(const Scenario& scenario, const Pricing& pricing);

}  // namespace stepcast
