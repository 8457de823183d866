// SPDX-License-Identifier: Apache-2.0
// The way back: a cluster as the value of a scenario that read_cluster() reads as the same cluster.
#pragma once

#include "core/json_fwd.h"

namespace stepcast {

struct Cluster;

// Writes a cluster by its base if it has one, else its figures, or the graph of an irregular one.
SortedJson to_json(const Cluster& cluster);

// The graph of any cluster as a file of an irregular one, which reads back as that graph.
SortedJson graph_file(const Cluster& cluster);

}  // namespace stepcast
