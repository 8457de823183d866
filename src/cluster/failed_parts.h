// SPDX-License-Identifier: Apache-2.0
// Parts of a cluster that have failed or are slow: "node1/nic3", "node0/gpu4", "node2", "leaf0",
// "leaf0-spine0", and "node1/nic3=50%" or "node1/nic3=100 Gb/s" for what is left of its bandwidth.
// "node0/gpu4=80%" and "node2=80%" are GPUs that compute at a share of their speed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/topology.h"
#include "core/result.h"

namespace stepcast {

struct FailedPart {
  std::string part;  // a vertex, a node, or two vertices joined by '-'
  double left = 0;   // of the capacity of its cables, of a GPU's speed; 0: gone, a GPU as well

  bool operator==(const FailedPart&) const = default;
};

// Reads one of them against the cluster without failures. Errors, without a place: names that it
// does not have, and a share or a rate that is none.
Result<FailedPart> parse_failed_part(std::string_view text, const Topology& whole);

// "node1/nic3=50%", as it is read back.
std::string text_of(const FailedPart& part);

// The GPUs of a part: those of a node, or one. None of another part, and of one that is not there.
std::vector<VertexId> gpus_of_part(std::string_view name, const Topology& graph);

// The graph without what has failed, its GPUs and nodes numbered anew; with cables that carry less
// and GPUs that compute less where they are slow. Every part has to be one of the graph's.
Topology without_failed(const Topology& whole, const std::vector<FailedPart>& parts);

}  // namespace stepcast
