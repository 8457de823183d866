// SPDX-License-Identifier: Apache-2.0
// A machine must reach this so that a scenario runs as forecast: the step, and the bus bandwidths
// of the collectives that matter for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data_type.h"
#include "core/json_tree.h"
#include "core/quantity.h"
#include "core/result.h"
#include "operation/collective_kind.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

// A machine passes with so much less bandwidth than forecast: the usual margin of acceptance tests.
inline constexpr double kBandwidthMargin = 0.1;
// Collectives that take a smaller share of the step, all calls together, are no condition.
inline constexpr double kLeastShare = 0.01;

struct CollectiveThreshold {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string group;  // "dp"
  std::int64_t ranks = 0, nodes = 1;
  ByteCount bytes = 0;  // as nccl-tests count them, of one call
  double share = 0;     // of the step, all calls of the kind in the group, before overlap
  double forecast_bus_bytes_per_s = 0, least_bus_bytes_per_s = 0;
  std::string command;  // that measures it
};

struct Thresholds {
  Json scenario;  // resolved
  std::int64_t gpus = 0, global_batch = 0, sequence = 0;
  double forecast_step_s = 0, most_step_s = 0;
  double least_tokens_per_s = 0;
  std::vector<CollectiveThreshold> collectives;  // the largest share first
};

// The step may take as long as the forecast's interval says (its 95th percentile).
Result<Thresholds> make_thresholds(const Scenario& scenario, const DataFolders& folders);

// The groups that nccl-tests runs at once where it cuts a world as `members` lie in it, side by
// side or each so-many-th rank: that of `members` first. It alone where no cut of nccl-tests makes
// it.
std::vector<std::vector<std::int64_t>> groups_at_once(const std::vector<std::int64_t>& members,
                                                      std::int64_t world);

// The command of nccl-tests that measures these groups.
std::string nccl_command(const CollectiveThreshold& threshold, DataType type,
                         const std::vector<std::int64_t>& members, std::int64_t world,
                         std::int64_t gpus_per_node);

}  // namespace stepcast
