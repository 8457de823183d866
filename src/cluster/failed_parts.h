// SPDX-License-Identifier: Apache-2.0
// Parts of a cluster that have failed or are slow: "node1/nic3", "node0/gpu4", "leaf0",
// "leaf0-spine0", and "node1/nic3=50%" or "node1/nic3=100 Gb/s" for what is left of its bandwidth.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/topology.h"
#include "core/result.h"

namespace stepcast {

struct FailedPart {
  std::string part;  // a vertex, or two of them joined by '-'
  double left = 0;   // of the capacity of its cables; 0: they are gone, and a GPU is too

  bool operator==(const FailedPart&) const = default;
};

// Reads one of them against the cluster without failures. Errors, without a place: names that it
// does not have, and a share or a rate that is none.
Result<FailedPart> parse_failed_part(std::string_view text, const Topology& whole);

// "node1/nic3=50%", as it is read back.
std::string text_of(const FailedPart& part);

// The graph without what has failed, its GPUs numbered anew; with cables that carry less where they
// are slow. Every part has to be one of the graph's.
Topology without_failed(const Topology& whole, const std::vector<FailedPart>& parts);

}  // namespace stepcast
