// SPDX-License-Identifier: Apache-2.0
// A ring is one activity of the engine: it loads each link by what crosses it in all
// (cost/link_load.h). Here every message of it is a task of its own, in the order in which NCCL
// sends them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "core/each.h"
#include "cost/collective_group.h"
#include "cost/link_load.h"
#include "places.h"
#include "sim/engine.h"

namespace stepcast {
namespace {

// An all-reduce.
struct Ring {
  std::vector<DeviceId> members;
  double bytes = 0;
};

// A bound on the rate of messages and collectives that binds nobody.
constexpr double kFree = 1e18;

class Network {
 public:
  explicit Network(const Cluster& cluster) : cluster_(cluster) {
    for (const Link& link : cluster.topology.links()) {
      work_.add_resource(link.capacity.value());
    }
  }

  sim::TaskId add(std::span<const sim::StreamId> streams, double bytes, double share,
                  std::span<const sim::Use> uses) {
    std::vector<sim::MemberSpec> members;
    for (const sim::StreamId stream : streams) members.push_back({stream, {}, {}});
    return work_.add_task({.members = members,
                           .latency = {},
                           .work = bytes,
                           .rate_bound = kFree,
                           .share = share,
                           .uses = uses});
  }
  sim::StreamId add_stream() { return work_.add_stream(); }
  void depend(sim::TaskId before, sim::TaskId after) { work_.depend(before, after); }
  const Cluster& cluster() const { return cluster_; }

  // When the last task of each list has ended, in seconds.
  std::vector<double> ends(const std::vector<std::vector<sim::TaskId>>& lists) const {
    const auto replayed = sim::replay(work_);
    EXPECT_TRUE(replayed.has_value());
    std::vector<double> out;
    for (const auto& tasks : lists) {
      sim::Time last{};
      for (const sim::TaskId task : tasks) {
        last = std::max(last, replayed->tasks[task.index()].end);
      }
      out.push_back(sim::seconds(last).value());
    }
    return out;
  }

 private:
  const Cluster& cluster_;
  sim::Workload work_;
};

std::vector<double> as_activities(const Cluster& cluster, const std::vector<Ring>& rings) {
  Network network(cluster);
  std::vector<std::vector<sim::TaskId>> tasks;
  for (const Ring& ring : rings) {
    std::vector<sim::Use> uses;
    for (const LinkLoad& load :
         routed_bytes(cluster, Algorithm::kRing, CollectiveKind::kAllReduce, ring.members)) {
      uses.push_back({sim::ResourceId(load.link.value), load.weight});
    }
    const std::vector<sim::StreamId> streams = {network.add_stream()};
    tasks.push_back({network.add(streams, ring.bytes, 1, uses)});
  }
  return network.ends(tasks);
}

using Order = std::vector<std::size_t>;  // places in a domain, as a ring visits them

// Rings that together use every cable of a mesh of eight once each way.
const std::vector<Order> kRingsOfEight = {{0, 7, 6, 4, 1, 2, 3, 5}, {0, 5, 7, 4, 6, 2, 1, 3},
                                          {0, 4, 3, 7, 5, 2, 6, 1}, {0, 3, 2, 7, 1, 6, 5, 4},
                                          {0, 6, 3, 4, 2, 5, 1, 7}, {0, 2, 4, 7, 3, 1, 5, 6},
                                          {0, 1, 4, 5, 3, 6, 7, 2}};

// The rings of one domain: a mesh has some that use all its cables alike, others have one.
std::vector<Order> orders_in_domain(const ClusterSpec& spec, std::size_t size) {
  Order ascending(size);
  std::iota(ascending.begin(), ascending.end(), std::size_t{0});
  if (spec.scale_up != ScaleUp::kNvlinkMesh || size < 3) return {ascending};
  if (size == 8) return kRingsOfEight;
  std::vector<Order> all;
  Order order = ascending;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return all;
}

// The members in the order of each channel: it enters a domain at one member, and leaves from the
// one before it in the domain's ring for the member of that place in the next domain.
std::vector<std::vector<DeviceId>> channels_of(const Cluster& cluster, const Ring& ring) {
  const std::vector<DomainMembers> domains = by_domain(cluster, ring.members);
  const std::size_t size = domains.front().size();
  std::vector<std::vector<DeviceId>> channels;
  for (const Order& order : orders_in_domain(cluster.spec, size)) {
    const std::size_t entries = domains.size() == 1 ? 1 : size;
    for (std::size_t entry = 0; entry < entries; ++entry) {
      std::vector<DeviceId> channel;
      for (std::size_t d = 0; d < domains.size(); ++d) {
        const std::size_t first = (entry + d * (size - 1)) % size;
        for (std::size_t i = 0; i < size; ++i) {
          channel.push_back(domains[d][order[(first + i) % size]]);
        }
      }
      channels.push_back(channel);
    }
  }
  return channels;
}

// n - 1 rounds that reduce and n - 1 that hand the results on. A member sends what it received in
// the round before.
std::vector<sim::TaskId> add_messages(Network& network, const Ring& ring) {
  const auto channels = channels_of(network.cluster(), ring);
  std::vector<sim::TaskId> all;
  for (const std::vector<DeviceId>& channel : channels) {
    const std::size_t n = channel.size();
    std::vector<sim::StreamId> sends;
    std::vector<std::vector<sim::Use>> uses(n);
    for (std::size_t i = 0; i < n; ++i) {
      sends.push_back(network.add_stream());
      for (const LinkLoad& load :
           routed_bytes_of_send(network.cluster(), channel[i], channel[(i + 1) % n])) {
        uses[i].push_back({sim::ResourceId(load.link.value), load.weight});
      }
    }
    const double bytes = ring.bytes / static_cast<double>(channels.size() * n);
    const double share = 1 / static_cast<double>(channels.size());
    std::vector<sim::TaskId> before;
    for (std::size_t round = 0; round < 2 * (n - 1); ++round) {
      std::vector<sim::TaskId> now;
      for (std::size_t i = 0; i < n; ++i) {
        now.push_back(network.add({&sends[i], 1}, bytes, share, uses[i]));
        if (round > 0) network.depend(before[(i + n - 1) % n], now.back());
      }
      all.insert(all.end(), now.begin(), now.end());
      before = now;
    }
  }
  return all;
}

std::vector<double> message_by_message(const Cluster& cluster, const std::vector<Ring>& rings) {
  Network network(cluster);
  std::vector<std::vector<sim::TaskId>> tasks;
  for (const Ring& ring : rings) tasks.push_back(add_messages(network, ring));
  return network.ends(tasks);
}

// Four nodes of each cluster that ships, two of them under each set of leaves; racks of two.
std::vector<Cluster> shipped() {
  std::vector<Cluster> out;
  const auto specs = list_clusters(source_folder() + "/topologies");
  EXPECT_TRUE(specs.has_value());
  for (ClusterSpec spec : *specs) {
    if (spec.nvlink_domain_nodes > 1) spec.nvlink_domain_nodes = 2;
    spec.nodes = spec.nics_per_node == 0 ? 1 : 4 * spec.nvlink_domain_nodes;
    spec.gpus = spec.nodes * spec.gpus_per_node;
    spec.nodes_per_leaf_group = 2 * spec.nvlink_domain_nodes;
    spec.pod_nodes = 0;
    out.push_back({spec, build_topology(spec)});
  }
  return out;
}

std::vector<DeviceId> devices(std::int64_t first, std::int64_t count, std::int64_t stride = 1) {
  std::vector<DeviceId> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(DeviceId(static_cast<std::int32_t>(first + i * stride)));
  }
  return out;
}

void expect_alike(const Cluster& cluster, const std::vector<Ring>& rings, double tolerance) {
  const std::vector<double> one = as_activities(cluster, rings);
  const std::vector<double> single = message_by_message(cluster, rings);
  for (std::size_t r = 0; r < rings.size(); ++r) {
    EXPECT_NEAR(one[r] / single[r], 1, tolerance)
        << cluster.spec.name << ", ring " << r << ": " << one[r] << " s, by messages " << single[r];
  }
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(RingFlows, ARingAloneTakesTheTimeOfItsMessages) {
  for (const Cluster& cluster : each_of(shipped())) {
    const std::int64_t local = cluster.spec.gpus_per_domain();
    expect_alike(cluster, {{devices(0, std::min(local, cluster.gpus())), kGiB}}, 0.01);
    if (cluster.spec.nics_per_node > 0) {
      expect_alike(cluster, {{devices(0, cluster.gpus()), kGiB}}, 0.01);
    }
  }
}

// The groups of data parallelism beside whole nodes of tensor parallelism: one GPU of each node.
TEST(RingFlows, SiblingsOfTwoSizesShareTheirLinks) {
  for (Cluster& cluster : each_of(shipped())) {
    if (cluster.spec.nics_per_node == 0) continue;
    cluster.spec.oversubscription = 4;
    cluster.topology = build_topology(cluster.spec);
    const std::int64_t local = cluster.spec.gpus_per_domain();
    std::vector<Ring> rings;
    for (std::int64_t i = 0; i < local; ++i) {
      rings.push_back({devices(i, cluster.gpus() / local, local), i % 2 == 0 ? kGiB : kGiB / 2});
    }
    expect_alike(cluster, rings, 0.05);
  }
}

// Two jobs of two nodes each, spread over both sets of leaves.
TEST(RingFlows, RingsOfNodesShareATrunk) {
  for (Cluster& cluster : each_of(shipped())) {
    if (cluster.spec.nics_per_node == 0) continue;
    cluster.spec.oversubscription = 4;
    cluster.topology = build_topology(cluster.spec);
    const std::int64_t local = cluster.spec.gpus_per_domain();
    std::vector<Ring> rings;
    for (const std::int64_t first : {0, 1}) {
      std::vector<DeviceId> members = devices(first * local, local);
      const std::vector<DeviceId> others = devices((first + 2) * local, local);
      members.insert(members.end(), others.begin(), others.end());
      rings.push_back({members, first == 0 ? kGiB : kGiB / 2});
    }
    expect_alike(cluster, rings, 0.05);
  }
}

// A ring over all nodes, one over half of them, and a third inside a domain: their messages are of
// different sizes, and meet on the trunk, on NICs and on NVLinks. The third lasts about as long
// as the first does: what a ring has sent differs by a round of messages at any instant, which is
// little of all that a long one sends.
TEST(RingFlows, UnlikeRingsShareWhatTheyMeetOn) {
  for (Cluster& cluster : each_of(shipped())) {
    if (cluster.spec.nics_per_node == 0) continue;
    cluster.spec.oversubscription = 4;
    cluster.topology = build_topology(cluster.spec);
    const std::int64_t local = cluster.spec.gpus_per_domain();
    std::vector<DeviceId> half = devices(0, local);
    const std::vector<DeviceId> far = devices(2 * local, local);
    half.insert(half.end(), far.begin(), far.end());
    const Ring all{devices(0, cluster.gpus()), kGiB};
    Ring inside{devices(local, local), kGiB};
    const Ring part{half, kGiB};
    inside.bytes *= as_activities(cluster, {all, part})[0] / as_activities(cluster, {inside})[0];
    expect_alike(cluster, {all, part, inside}, 0.05);
  }
}

}  // namespace
}  // namespace stepcast
