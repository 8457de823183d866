// SPDX-License-Identifier: Apache-2.0
// How the members of a communicator lie in the cluster: what decides its graph and its price.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/id.h"

namespace stepcast {

class Topology;
struct Cluster;
struct ClusterSpec;

// A domain is what NCCL calls a node: the GPUs that reach each other without the network.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t domains = 1;
  std::int64_t largest = 1;       // members in the fullest domain
  std::int64_t smallest = 1;      // and in the emptiest
  std::int64_t nics = 0;          // NICs beside the members of a domain, the fewest of all domains
  std::int64_t switch_links = 0;  // between switches, on its longest way
  std::int64_t sites = 1;         // that members stand in
  // The share that is left of the slowest among the members' links: the cluster states the whole.
  double scale_up_left = 1;
  double pcie_left = 1;
  double nic_left = 1;
  auto operator<=>(const GroupShape&) const = default;
};

// Members of one domain, in group order.
using DomainMembers = std::vector<DeviceId>;

// The links that a GPU drives.
class DeviceLinks {
 public:
  explicit DeviceLinks(const Cluster& cluster);

  // NICs that share a PCIe switch with the GPU: NCCL drives the network through those (PIX). A GPU
  // without such a NIC uses all of its machine.
  std::span<const VertexId> nics(DeviceId device) const;

  bool any_slow() const { return !slow_gpus_.empty() || !slow_nics_.empty(); }
  // The share that is left of their links, of what the cluster states for all.
  struct Left {
    double scale_up = 1, pcie = 1;
  };
  Left left(DeviceId device) const;
  double nic_left(VertexId nic) const;

 private:
  void find_slow(const Cluster& cluster);

  std::vector<VertexId> nics_;
  std::vector<std::int32_t> first_;  // by device, and one past the end
  std::map<DeviceId, Left> slow_gpus_;
  std::map<VertexId, double> slow_nics_;
};

// NICs that a GPU drives where none has failed and no two GPUs share one.
std::int64_t nics_of_gpu(const ClusterSpec& cluster);

// Sets what is left of the members' links in `shape`, whose domains are known: all members wait for
// the slowest of them.
void find_what_is_left(const DeviceLinks& links, std::span<const DeviceId> members,
                       GroupShape& shape);

// Links between switches on the longest way among members (cluster/fabric.h).
std::int64_t switch_links(const Cluster& cluster, std::span<const DeviceId> members);

GroupShape shape_of(const Cluster& cluster, const DeviceLinks& links,
                    std::span<const DeviceId> members);

// Groups the members, in the order in which the group first meets each domain.
std::vector<DomainMembers> by_domain(const Cluster& cluster, std::span<const DeviceId> members);

}  // namespace stepcast
