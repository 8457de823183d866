// SPDX-License-Identifier: Apache-2.0
// A cluster's graph for people and for graph tools.
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace stepcast {

std::string topology_table(const Cluster& cluster);  // what there is of each kind
std::string topology_json(const Cluster& cluster);   // every vertex and link
std::string topology_dot(const Cluster& cluster);    // Graphviz
std::string topology_graphml(const Cluster& cluster);

}  // namespace stepcast
