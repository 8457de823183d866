// SPDX-License-Identifier: Apache-2.0
#include "cost/mpi_collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace stepcast {
namespace {

// Stands in for a measurement. A message from a process to one that sleeps until it comes: the
// wake-up and a few microseconds of MPI; a judgement, not a fit.
constexpr Seconds kMessage(5e-6);
// Copies through memory and the network stack run on the rank's core all the time.
constexpr double kCpuShare = 1;

// A collective that alone fills less than this of a link is bound by something else.
constexpr double kBindsFrom = 0.5;
// A transfer that takes all of a core beside kernels would leave them nothing.
constexpr double kLeastRemainder = 0.01;

std::vector<std::int64_t> nodes_of(const Cluster& cluster, std::span<const DeviceId> members) {
  std::vector<std::int64_t> out;
  for (const DeviceId member : members) out.push_back(cluster.node_of(member));
  return out;
}

// Numbers the nodes in the order of their first appearance, so that groups which lie alike on other
// nodes have equal patterns.
std::vector<std::int64_t> pattern_of(const std::vector<std::int64_t>& nodes) {
  std::map<std::int64_t, std::int64_t> seen;
  std::vector<std::int64_t> out;
  for (const std::int64_t node : nodes) {
    out.push_back(seen.try_emplace(node, static_cast<std::int64_t>(seen.size())).first->second);
  }
  return out;
}

// Messages that follow one another.
double steps_of(CollectiveKind kind, double ranks) {
  if (kind == CollectiveKind::kSendReceive) return 1;
  return (kind == CollectiveKind::kAllReduce ? 2 : 1) * (ranks - 1);
}

// visit(from, to, bytes per byte of payload) for every pair that exchanges something. In a
// broadcast all hops but the one before the root carry the payload, so each hop gets the mean over
// roots.
template <class Visit>
void for_each_hop(CollectiveKind kind, std::span<const DeviceId> members, Visit visit) {
  const double n = static_cast<double>(members.size());
  if (kind == CollectiveKind::kSendReceive) return visit(members[0], members[1], 1.0);
  if (kind == CollectiveKind::kAllToAll) {
    for (const DeviceId from : members) {
      for (const DeviceId to : members) {
        if (from != to) visit(from, to, 1 / n);
      }
    }
    return;
  }
  const double bytes = (kind == CollectiveKind::kAllReduce ? 2 : 1) * (n - 1) / n;
  for (std::size_t i = 0; i < members.size(); ++i) {
    visit(members[i], members[(i + 1) % members.size()], bytes);
  }
}

std::vector<LinkLoad> routed(const Cluster& cluster, CollectiveKind kind,
                             std::span<const DeviceId> members) {
  std::map<LinkId, double> sum;
  for_each_hop(kind, members, [&](DeviceId from, DeviceId to, double bytes) {
    for (const LinkShare& share : cluster.topology.route(from, to)) {
      sum[share.link] += share.fraction * bytes;
    }
  });
  std::vector<LinkLoad> out;
  for (const auto& [link, weight] : sum) out.push_back({link, weight});
  return out;
}

double capacity_of(const Topology& topology, LinkId link) {
  return topology.links()[link.index()].capacity.value();
}

// The load that takes most of its link; there must be one.
LinkLoad busiest_of(const Topology& topology, const std::vector<LinkLoad>& loads) {
  return *std::max_element(loads.begin(), loads.end(), [&](const LinkLoad& a, const LinkLoad& b) {
    return a.weight / capacity_of(topology, a.link) < b.weight / capacity_of(topology, b.link);
  });
}

// Up to `count` groups that lie like the members, side by side, load the link with this together;
// the members' own group is among them.
double load_of_alike(const Cluster& cluster, CollectiveKind kind, std::span<const DeviceId> members,
                     std::int64_t count, LinkId link) {
  const std::int64_t gpus = cluster.gpus();
  std::vector<bool> taken(static_cast<std::size_t>(gpus), false);
  std::vector<DeviceId> moved(members.begin(), members.end());
  const auto place = [&](std::int64_t distance) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::int64_t device = members[i].value + distance;
      if (device < 0 || device >= gpus || taken[static_cast<std::size_t>(device)]) return false;
      moved[i] = DeviceId(static_cast<std::size_t>(device));
    }
    for (const DeviceId device : moved) taken[device.index()] = true;
    return true;
  };
  double sum = 0;
  for (std::int64_t apart = 0; apart < gpus; ++apart) {
    for (const std::int64_t distance : {apart, -apart}) {
      if (count == 0) return sum;
      if (!place(distance)) continue;
      --count;
      for (const LinkLoad& load : routed(cluster, kind, moved)) {
        if (load.link == link) sum += load.weight;
      }
    }
  }
  return sum;
}

// The latency of the longest way that one message takes.
Seconds longest_hop(const Cluster& cluster, CollectiveKind kind,
                    std::span<const DeviceId> members) {
  Seconds longest;
  for_each_hop(kind, members, [&](DeviceId from, DeviceId to, double) {
    longest = std::max(longest, cluster.topology.latency(from, to));
  });
  return longest;
}

// Beside a kernel, of weight 1 on a core of its own, it has w / (1 + w) of that core: its share
// over its stretch. Where ranks share cores both were measured beside all of them, and so was the
// kernel's part.
double core_weight(const MpiCurve& curve, const ClusterSpec& spec) {
  if (curve.stretch == 0 || curve.cpu_share == 0) return 1;
  double part = 1;  // of a core, that a rank has
  if (spec.takes_turns()) {
    part = static_cast<double>(spec.shared_cores) / static_cast<double>(spec.gpus);
  }
  return curve.cpu_share / std::max(part * curve.stretch - curve.cpu_share, kLeastRemainder);
}

Algorithm algorithm_of(CollectiveKind kind) {
  if (kind == CollectiveKind::kSendReceive) return Algorithm::kDirect;
  return kind == CollectiveKind::kAllToAll ? Algorithm::kPairwise : Algorithm::kRing;
}

}  // namespace

const MpiCurve* MpiCollectives::find(CollectiveKind kind, std::span<const DeviceId> members) const {
  const std::vector<std::int64_t> nodes = nodes_of(cluster_, members);
  const std::vector<std::int64_t> pattern = pattern_of(nodes);
  // All groups of a kind run in step, so they communicate at the same time.
  const double groups = static_cast<double>(cluster_.gpus()) / static_cast<double>(members.size());
  using Distance = std::tuple<bool, double, std::int64_t>;  // other nodes, concurrency
  const MpiCurve* best = nullptr;
  Distance least;
  for (const MpiCurve& curve : curves_) {
    if (curve.kind != kind || pattern_of(curve.placement) != pattern) continue;
    // Another way between sites may be longer.
    if (cluster_.spec.sites > 1 && curve.placement != nodes) continue;
    const double concurrent = static_cast<double>(curve.concurrent);
    const Distance distance{curve.placement != nodes, std::abs(std::log(concurrent / groups)),
                            curve.concurrent};
    if (best != nullptr && !(distance < least)) continue;
    best = &curve;
    least = distance;
  }
  return best;
}

CollectivePrice MpiCollectives::price(CollectiveKind kind, Bytes size,
                                      std::span<const DeviceId> members) const {
  CollectivePrice out;
  out.work = size;
  out.algorithm = algorithm_of(kind);
  out.curve = kind == CollectiveKind::kSendReceive ? Curve::kPointToPoint : Curve::kCollective;
  if (const MpiCurve* curve = find(kind, members)) {
    // The latency phase is that of an empty message; what is longer moves the payload, never
    // faster than the fastest message of the curve.
    const MpiCurve::Point point = curve->at(size);
    const Seconds moving = std::max(size / curve->fastest(), point.time - curve->latency());
    out.latency = std::max(point.time - moving, Seconds());
    // The part of a message that fits into buffers loads no link. The largest message of the curve
    // fills them.
    const bool fits_buffers = size.value() <= curve->samples.back().bytes;
    out.work = fits_buffers ? std::min(size, curve->sustained() * moving) : size;
    out.rate_bound = out.work / moving;
    out.cpu_share = curve->cpu_share;
    out.core_weight = core_weight(*curve, cluster_.spec);
    out.provenance = point.provenance;
    return out;
  }
  const double ranks = static_cast<double>(members.size());
  const LinkLoad busiest = busiest_of(cluster_.topology, routed(cluster_, kind, members));
  out.latency = steps_of(kind, ranks) * (kMessage + longest_hop(cluster_, kind, members));
  // Each payload passes all hops but one of a broadcast; its loads are the mean over roots.
  const double whole = kind == CollectiveKind::kBroadcast ? (ranks - 1) / ranks : 1;
  out.rate_bound =
      BytesPerSecond(whole * capacity_of(cluster_.topology, busiest.link) / busiest.weight);
  out.cpu_share = kCpuShare;
  out.provenance = Provenance::kDataSheet;
  return out;
}

std::vector<LinkLoad> MpiCollectives::loads(CollectiveKind kind,
                                            std::span<const DeviceId> members) const {
  std::vector<LinkLoad> loads = routed(cluster_, kind, members);
  const MpiCurve* curve = find(kind, members);
  if (curve == nullptr) return loads;
  // The groups that ran at once filled the busiest link, so its capacity is exactly what they
  // moved.
  const LinkLoad busiest = busiest_of(cluster_.topology, loads);
  const double together = load_of_alike(cluster_, kind, members, curve->concurrent, busiest.link);
  const double filled =
      together * curve->sustained().value() / capacity_of(cluster_.topology, busiest.link);
  if (filled < kBindsFrom) return loads;
  for (LinkLoad& load : loads) load.weight /= filled;
  return loads;
}

}  // namespace stepcast
