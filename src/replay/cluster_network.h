// SPDX-License-Identifier: Apache-2.0
// A cluster under a graph: what ranks send is priced as a forecast prices it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "cost/collective_cost.h"
#include "replay/graph_network.h"

namespace stepcast {

struct DataFolders;

struct ClusterPlaces {
  std::string profile;             // whose curves price; empty: the one that the device names
  std::vector<std::int32_t> gpus;  // by rank: where it runs; empty: rank i on GPU i
};

// `cluster` must outlive it. Errors: a profile or curves that cannot be read.
Result<std::unique_ptr<GraphNetwork>> cluster_network(const Cluster& cluster,
                                                      const DataFolders& folders,
                                                      ClusterPlaces places = {});

// A list of GPUs, one for each rank: [0, 8, 1, 9]. Errors: a GPU that the cluster does not have, or
// that two ranks share, and fewer of them than `ranks`.
Result<std::vector<std::int32_t>> read_rank_map(const std::string& file, std::int64_t ranks,
                                                std::int64_t gpus);

}  // namespace stepcast
