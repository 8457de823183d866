// SPDX-License-Identifier: Apache-2.0
// How the members of a communicator lie in the cluster: what decides its graph and its price.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "core/id.h"

namespace stepcast {

class Topology;
struct Cluster;

// A domain is what NCCL calls a node: the GPUs that reach each other without the network.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t domains = 1;
  std::int64_t largest = 1;   // members in the fullest domain
  std::int64_t smallest = 1;  // and in the emptiest
  std::int64_t nics = 0;      // NICs beside the members of a domain, the fewest of all domains
  std::int64_t tiers = 0;     // of switches above the leaves on its longest way
  auto operator<=>(const GroupShape&) const = default;
};

// Members of one domain, in group order.
using DomainMembers = std::vector<DeviceId>;

// The NICs that share a PCIe switch with each GPU: NCCL drives the network through those (PIX). A
// GPU without such a NIC uses all of its machine.
class NicMap {
 public:
  explicit NicMap(const Topology& topology);
  std::span<const VertexId> nics(DeviceId device) const;

 private:
  std::vector<VertexId> nics_;
  std::vector<std::int32_t> first_;  // by device, and one past the end
};

// How many switches the longest way between members passes above the leaves: 0 inside one group of
// leaves, 1 over a spine, 2 over the core between pods.
std::int64_t tiers_above_leaves(const Cluster& cluster, std::span<const DeviceId> members);

GroupShape shape_of(const Cluster& cluster, const NicMap& nics, std::span<const DeviceId> members);

// Groups the members, in the order in which the group first meets each domain.
std::vector<DomainMembers> by_domain(const Cluster& cluster, std::span<const DeviceId> members);

}  // namespace stepcast
