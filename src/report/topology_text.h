// SPDX-License-Identifier: Apache-2.0
// A cluster's graph for people and for graph tools.
#pragma once

#include <string>

#include "core/text/written.h"

namespace stepcast {

struct Cluster;

Written topology_table(const Cluster& cluster);  // what there is of each kind
Written topology_json(const Cluster& cluster);   // every vertex and link
Written topology_dot(const Cluster& cluster);    // Graphviz
Written topology_graphml(const Cluster& cluster);

}  // namespace stepcast
