// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

namespace stepcast {
namespace {

// Bandwidths that the search tries for one channel, GB/s, from high to low.
constexpr double kIntra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kIntraHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kIntraBlackwell[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr double kInter[] = {48, 30, 28, 24, 20, 18,  15,  12,   10,  9,
                             7,  6,  5,  4,  3,  2.4, 1.2, 0.24, 0.12};
constexpr double kInterHopper[] = {48, 45, 42, 40, 30,  24,  22,   20,  17.5,
                                   15, 12, 6,  3,  2.4, 1.2, 0.24, 0.12};
constexpr double kInterBlackwell[] = {96,   48, 45.1, 42, 40, 30,  24,  22,   20,
                                      17.5, 15, 12,   6,  3,  2.4, 1.2, 0.24, 0.12};

constexpr double kPcieFraction = 12 / 15.75;    // that NCCL counts of a link
constexpr double kNetworkFraction = 24 / 25.0;  // the speed that it has for a NIC of 200 Gb/s

constexpr std::int64_t kMaxSearchChannels = 32;
constexpr std::int64_t kMaxChannels = 64;
constexpr std::int64_t kMaxNvlsHeads = 8;  // NCCL_MAX_NVLS_ARITY

NcclGeneration generation_of(const ClusterSpec& cluster) {
  return nccl_generation(cluster.accelerator.architecture);
}

bool runs_rccl(const ClusterSpec& cluster) {
  return traits_of(cluster.accelerator.architecture).runs_rccl;
}

std::span<const double> intra_speeds(NcclGeneration generation) {
  if (generation == NcclGeneration::kHopper) return kIntraHopper;
  if (generation == NcclGeneration::kBlackwell) return kIntraBlackwell;
  return kIntra;
}

std::span<const double> inter_speeds(NcclGeneration generation) {
  if (generation == NcclGeneration::kHopper) return kInterHopper;
  if (generation == NcclGeneration::kBlackwell) return kInterBlackwell;
  return kInter;
}

struct Fit {
  std::int64_t channels = 1;
  double speed = 0;
};

// Channels may take this much, GB/s: of each of `paths` alike, and of all together.
struct Room {
  double path = 0;
  double paths = 1;
  double all = std::numeric_limits<double>::infinity();
};

// Counts how often `part` goes into `whole`; figures such as 24 of 24 GB/s are not exact.
double times_in(double part, double whole) { return std::floor(whole / part * (1 + 1e-9)); }

// Finds the most bandwidth with equal channels. Once it has a solution, the search tries lower
// speeds only down to half of that one.
Fit fit(const Room& room, std::span<const double> speeds) {
  Fit best{1, std::min(room.path, room.all)};
  double first = 0;
  double most = 0;
  for (const double speed : speeds) {
    const double on_path =
        std::min(times_in(speed, room.path), static_cast<double>(kMaxSearchChannels));
    const double channels = std::min(room.paths * on_path, times_in(speed, room.all));
    if (channels < 1) continue;
    if (first == 0) first = speed;
    if (speed < 0.49 * first) break;
    if (channels * speed > most) {
      most = channels * speed;
      best = {static_cast<std::int64_t>(channels), speed};
    }
  }
  return best;
}

double group_scale_up(const ClusterSpec& cluster, const GroupShape& group, std::int64_t members) {
  return nccl_group_bandwidth(cluster, group, members).value() * 1e-9;
}

// A channel takes one NIC of each domain. It comes to the NIC over PCIe, whose links NCCL counts
// too: behind 24 GB/s of generation 4 a NIC of 400 Gb/s is worth no more than one of 200.
Room network_room(const ClusterSpec& cluster, const GroupShape& group) {
  const double pcie =
      cluster.pcie_bandwidth.value() > 0
          ? (cluster.pcie_bandwidth * group.pcie_left * kPcieFraction).value() * 1e-9
          : std::numeric_limits<double>::infinity();
  const double local = static_cast<double>(group.largest);
  Room room{.path = std::min((cluster.nic_bandwidth * group.nic_left).value() * 1e-9, pcie),
            .paths = static_cast<double>(std::max<std::int64_t>(group.nics, 1)),
            .all = pcie * local};
  if (group.largest > 1) {
    // One GPU in each domain sends to the network instead of to its neighbour.
    const double limit = group_scale_up(cluster, group, group.largest) * local / (local - 1);
    room.all = std::min(room.all, limit);
  }
  return room;
}

// RCCL's rings of a mesh run over every link at once, and so do ours.
NcclChannels mesh_channels(const ClusterSpec& cluster, const GroupShape& group) {
  const std::int64_t links = group.ranks - 1;
  const double speed = group_scale_up(cluster, group, group.ranks) / static_cast<double>(links);
  return {links, BytesPerSecond(speed * 1e9), BytesPerSecond(speed * 1e9)};
}

NcclChannels ring_channels(const ClusterSpec& cluster, const GroupShape& group) {
  const bool is_mesh = cluster.scale_up == ScaleUp::kNvlinkMesh && group.domains == 1;
  if (runs_rccl(cluster) && is_mesh) return mesh_channels(cluster, group);
  const NcclGeneration generation = generation_of(cluster);
  Fit found = group.domains == 1 ? fit({.path = group_scale_up(cluster, group, group.ranks)},
                                       intra_speeds(generation))
                                 : fit(network_room(cluster, group), inter_speeds(generation));
  const bool split = found.speed >= 25 && !(generation > NcclGeneration::kAmpere &&
                                            found.speed < 50 && found.channels > 4);
  if (split) found = {found.channels * 2, found.speed / 2};
  const BytesPerSecond speed(found.speed * 1e9);
  return {found.channels, speed, speed};
}

NcclChannels nvls_channels(const ClusterSpec& cluster, const GroupShape& group,
                           const NcclChannels& ring) {
  const NcclGeneration generation = generation_of(cluster);
  const bool can = cluster.nvls && !runs_rccl(cluster) && cluster.scale_up == ScaleUp::kNvSwitch &&
                   generation > NcclGeneration::kAmpere && group.smallest >= 2;
  if (!can) return {};
  const std::int64_t heads = std::min(group.smallest, kMaxNvlsHeads);
  const double switched = nccl_scale_up_bandwidth(cluster).value() * group.scale_up_left * 1e-9;
  const double limit = switched / static_cast<double>(heads + 1);
  for (const double speed : intra_speeds(generation)) {
    if (speed > limit) continue;
    const BytesPerSecond intra(speed * 1e9);
    const BytesPerSecond inter =
        group.domains == 1 ? intra : ring.total() / static_cast<double>(heads);
    return {heads, intra, inter};
  }
  return {};
}

// RCCL takes 48 to 64 channels across nodes, and as many among eight GPUs of one (ROCm/rocm-systems
// pull request 9406), a compute unit each.
constexpr std::int64_t kRcclChannels = 48;

std::int64_t run_channels(const NcclGraph& graph) {
  const NcclSettings& settings = graph.settings;
  std::int64_t count = 2 * graph.ring.count;
  if (graph.rccl) count = graph.domains > 1 ? kRcclChannels : 8 * graph.ring.count;
  if (graph.generation == NcclGeneration::kHopper && graph.domains > 1 && count < 16 &&
      graph.ring.intra.value() > 45e9) {
    count *= 2;
  }
  // 32 up to 2.24.
  const bool is_old = settings.minor > 0 && settings.minor < 25;
  count = std::max(std::min(count, is_old ? kMaxChannels / 2 : kMaxChannels), settings.min_ctas);
  return settings.max_channels > 0 ? std::min(count, settings.max_channels) : count;
}

std::int64_t run_channels_nvls(const NcclGraph& graph) {
  if (graph.nvls.count == 0) return 0;
  const NcclSettings& settings = graph.settings;
  const bool is_first = settings.minor == 25 || settings.minor == 26;
  std::int64_t count = graph.generation == NcclGeneration::kHopper ? 16
                       : graph.domains == 1 && !is_first           ? 24
                                                                   : 32;
  count = std::max(count, settings.min_ctas);
  return settings.max_channels > 0 ? std::min(count, settings.max_channels) : count;
}

std::int64_t power_of_two_above(std::int64_t count) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)));
}

}  // namespace

// PCIe gen3 x16: 12 of 15.75 (topo.h).
BytesPerSecond nccl_scale_up_bandwidth(const ClusterSpec& cluster) {
  if (cluster.scale_up == ScaleUp::kPcie) return cluster.pcie_bandwidth * kPcieFraction;
  return cluster.scale_up_bandwidth * traits_of(cluster.accelerator.architecture).nvlink_part;
}

double nccl_wire_part(const ClusterSpec& cluster, LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return traits_of(cluster.accelerator.architecture).nvlink_part;
    case LinkKind::kPcie:
    case LinkKind::kHostBus:
      return kPcieFraction;
    case LinkKind::kNic:
    case LinkKind::kFabric:
      return kNetworkFraction;
  }
  return 1;
}

BytesPerSecond nccl_group_bandwidth(const ClusterSpec& cluster, const GroupShape& group,
                                    std::int64_t members) {
  const BytesPerSecond all = nccl_scale_up_bandwidth(cluster) * group.scale_up_left;
  if (cluster.scale_up != ScaleUp::kNvlinkMesh || cluster.gpus_per_node < 2) return all;
  return all * (static_cast<double>(members - 1) / static_cast<double>(cluster.gpus_per_node - 1));
}

NcclGraph nccl_graph(const ClusterSpec& cluster, const GroupShape& group) {
  NcclGraph graph;
  graph.generation = generation_of(cluster);
  graph.rccl = runs_rccl(cluster);
  graph.cpu = cluster.cpu;
  graph.nvlink = cluster.scale_up != ScaleUp::kPcie;
  graph.ranks = group.ranks;
  graph.domains = group.domains;
  graph.settings = cluster.nccl;
  if (graph.rccl) graph.settings.minor = 0;  // versions of NCCL are none of RCCL's
  if (group.ranks < 2) return graph;
  graph.ring = ring_channels(cluster, group);
  if (graph.settings.max_channels > 0) {
    graph.ring.count = std::min(graph.ring.count, graph.settings.max_channels);
  }
  // The first version that knew racks of NVLink did not reduce in their switches.
  const bool is_first_rack = cluster.nvlink_domain_nodes > 1 && graph.settings.minor == 20;
  if (graph.settings.nvls.value_or(!is_first_rack))
    graph.nvls = nvls_channels(cluster, group, graph.ring);
  graph.run_channels = run_channels(graph);
  graph.run_channels_nvls = run_channels_nvls(graph);
  return graph;
}

std::int64_t nccl_send_channels(const ClusterSpec& cluster, Bytes size, bool network,
                                std::int64_t ranks, std::int64_t domains, std::int64_t nics) {
  constexpr std::int64_t kPool = 32;  // channels for sends and receives of a communicator
  std::int64_t per_peer = 2;
  if (domains > 1) {
    per_peer = std::clamp<std::int64_t>(2 * nics, 2, kPool);
  } else if (cluster.scale_up != ScaleUp::kPcie) {
    const double links =
        cluster.scale_up_bandwidth / traits_of(cluster.accelerator.architecture).nvlink;
    per_peer = std::clamp<std::int64_t>(
        power_of_two_above(2 * std::max<std::int64_t>(std::llround(links), 1)), 1, kPool);
  }
  std::int64_t fewest = per_peer;
  if (domains == 1) {
    while (fewest > 1 && fewest * ranks > kPool) fewest /= 2;
  }
  const double chunk = network ? 131072 : 524288;
  const double smallest_part = domains > 1 ? chunk / 2 : chunk / 8;
  const double largest_part = domains > 1 ? chunk : chunk * 32;
  std::int64_t count = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(size.value() / smallest_part)), 1, fewest);
  while (size.value() > largest_part * static_cast<double>(count) && 2 * count <= per_peer) {
    count *= 2;
  }
  return count;
}

}  // namespace stepcast
