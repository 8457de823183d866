// SPDX-License-Identifier: Apache-2.0
// A cluster written out vertex by vertex and link by link (docs/formats/cluster.md, "Irregular
// clusters"). What other layers ask a ClusterSpec for is derived from the graph.
#pragma once

#include <cstddef>
#include <string>

namespace stepcast {

class ObjectReader;
struct Cluster;

// Each is written by hand, and the ways between all of them are looked for.
inline constexpr std::size_t kMostVertices = 20'000;

// Errors go to the reader's document. The cluster is meaningful only without any.
Cluster read_irregular_cluster(ObjectReader& reader, const std::string& topologies_folder);

}  // namespace stepcast
