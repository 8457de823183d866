// SPDX-License-Identifier: Apache-2.0
// The switches between the nodes of a regular cluster, and where nodes stand under them
// (docs/formats/cluster.md, "Fabrics").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/quantity.h"

namespace stepcast {

class ObjectReader;
struct ClusterSpec;
struct Rows;

enum class FabricKind { kFatTree, kDragonfly, kTorus };
const char* name_of(FabricKind kind);
enum class Ecmp { kEven, kHashed };  // which of several equal ways upward traffic takes
const char* name_of(Ecmp ecmp);

struct Fabric {
  FabricKind kind = FabricKind::kFatTree;
  std::int64_t planes = 1;   // networks side by side, with a port of each NIC in each of them
  bool rails_joined = true;  // over spines; false: each rail is a network of its own
  // Routers of a dragonfly or a torus.
  std::int64_t nodes_per_router = 1;
  BytesPerSecond router_link;          // a cable between two routers, one direction
  std::int64_t routers_per_group = 1;  // of a dragonfly
  std::int64_t global_links = 1;       // cables between two groups
  BytesPerSecond global_link;          // one of these
  std::vector<std::int64_t> torus;     // routers in each dimension
  // By node: the place under the switches where it stands. Empty: nodes stand in their order.
  std::vector<std::int32_t> places;
  std::vector<std::string> hosts;  // names of these nodes, as they were stated
  std::string slurm_topology;      // the file that places them
  // By device: the GPU that it is, counted node by node. Empty: GPUs are devices in their order.
  std::vector<std::int32_t> devices;
  // A fat tree may send each flow over one of a leaf's uplinks, by its hash.
  Ecmp ecmp = Ecmp::kEven;
  std::int64_t uplinks = 0;     // of a leaf; 0: not stated
  std::int64_t ecmp_flows = 1;  // from one GPU to another, over one NIC
  std::int64_t ecmp_seed = 0;

  static Rows fields();

  std::int64_t place_of(std::int64_t node) const {
    const auto at = static_cast<std::size_t>(node);
    return at < places.size() ? places[at] : node;
  }
  bool is_hashed() const { return ecmp == Ecmp::kHashed; }
  // Places from the first on to the last that is taken.
  std::int64_t places_of(std::int64_t nodes) const;
  // Routers of one plane, where so many places are taken.
  std::int64_t routers(std::int64_t places) const;
};

// The keys of a fabric, over what `spec` has; and what they must be to each other and to the other
// keys, which have been read.
void read_fabric_fields(ObjectReader& reader, ClusterSpec& spec);
void check_fabric(ObjectReader& reader, const ClusterSpec& spec);

// Links between switches on the longest way among nodes: 0 where all are under one leaf, 2 over a
// spine, 4 over the core between pods. A way that a failed cable makes longer is not looked for.
std::int64_t links_between_switches(const ClusterSpec& spec, std::span<const std::int64_t> nodes);

}  // namespace stepcast
