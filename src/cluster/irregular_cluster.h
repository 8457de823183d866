// SPDX-License-Identifier: Apache-2.0
// A cluster written out vertex by vertex and link by link (docs/formats/cluster.md, "Irregular
// clusters"). What other layers ask a ClusterSpec for is derived from the graph.
#pragma once

#include <string>

namespace stepcast {

class ObjectReader;
struct Cluster;

// Errors go to the reader's document. The cluster is meaningful only without any.
Cluster read_irregular_cluster(ObjectReader& reader, const std::string& topologies_folder);

}  // namespace stepcast
