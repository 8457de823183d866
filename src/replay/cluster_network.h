// SPDX-License-Identifier: Apache-2.0
// A cluster under a graph: rank i is GPU i, and what ranks send is priced as a forecast prices it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/result.h"
#include "cost/collective_cost.h"
#include "replay/graph_network.h"

namespace stepcast {

struct DataFolders;

// `cluster` must outlive it. Errors: a profile or curves that cannot be read.
Result<std::unique_ptr<GraphNetwork>> cluster_network(const Cluster& cluster,
                                                      const DataFolders& folders);

}  // namespace stepcast
