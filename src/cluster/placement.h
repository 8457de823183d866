// SPDX-License-Identifier: Apache-2.0
// Ranks stand on nodes or GPUs in the order of a list, or on nodes as Slurm orders them by
// switch (docs/formats/cluster.md, "Placement").
#pragma once

#include <string>

namespace stepcast {

class ObjectReader;
struct ClusterSpec;

// "place" and "slurm_topology"; the sizes have been read. What a base says stands where the reader
// says nothing.
void read_place_fields(ObjectReader& reader, ClusterSpec& spec);

// Reads back as "place"; empty where all stand in their order.
std::string place_text(const ClusterSpec& spec);

// Whether nodes stand in the order of their places.
bool is_in_order(const ClusterSpec& spec);

}  // namespace stepcast
