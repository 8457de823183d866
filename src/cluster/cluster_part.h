// SPDX-License-Identifier: Apache-2.0
// Some nodes of a cluster as a cluster of their own, on the fabric of the whole.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct Cluster;

// Has the GPUs of these nodes, which ascend and have some, as its devices. Vertices and links are
// those of the whole, with the same numbers, so that several parts can share them.
Cluster part_of(const Cluster& whole, const std::vector<std::int64_t>& nodes);

}  // namespace stepcast
