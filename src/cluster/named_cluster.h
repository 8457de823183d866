// SPDX-License-Identifier: Apache-2.0
// A cluster that is given by name alone: by its own, or by that of a GPU, which stands for a node
// of it or for a single card (`names_of_node` and `names_of_card` of a cluster's file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/data_folder.h"
#include "core/error.h"
#include "core/json_fwd.h"

namespace stepcast {

// The files of topologies/clusters.
DataFolder shipped_clusters(const std::string& topologies_folder);

// The cluster that a name stands for.
struct ClusterName {
  std::string cluster;   // a file of topologies/clusters, by its stem
  bool of_gpu = false;   // the name is a GPU's
  bool of_card = false;  // a GPU's that people have singly
};

// Names are read whatever their case and dashes. Empty where no shipped cluster is called so.
std::optional<ClusterName> find_cluster_name(const std::string& text,
                                             const std::string& topologies_folder);

// There is no such cluster; the hint names those that come near.
Error no_cluster(const std::string& text, const std::string& topologies_folder);

// A name with a size as the object that it stands for: "base", and its size where it says so.
// "dgx-h100x8" has 8 nodes, and so has "8xdgx-h100"; "8xh100" has 8 GPUs.
SortedJson named_cluster(const std::string& text, const std::string& topologies_folder);

// Gives the value of a scenario's `cluster`, named or not, `gpus` GPUs in place of its own size.
void set_gpus(SortedJson& cluster, std::int64_t gpus, const std::string& topologies_folder);

}  // namespace stepcast
