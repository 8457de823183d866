// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/assert.h"
#include "cost/nccl_graph.h"
#include "operation/distinct_destinations.h"

namespace stepcast {
namespace {

using namespace literals;

// A grouped send and receive costs a fixed part and a part per peer. From the floors of the sweeps
// b200x8-send-recv (9.05 us: one peer), b200x8-all-to-all (10.9 us: 7) and b200x16-all-to-all
// (37.0 us: 7 here, 8 across the network) of calibrate/published/collectives.json.
constexpr Seconds kPairwiseBase = 8.74_us;
constexpr Seconds kPairwiseLocalPeer = 0.31_us;
constexpr Seconds kPairwiseRemotePeer = 3.26_us;

// One CTA of a send over NVLink: 110.8 GB/s on the 8 channels of 128 MiB (a100x8-send-recv), 84.6
// GB/s on the 4 of 64 MiB (b200x8-send-recv), which the engine of the SM moves (TMA).
constexpr BytesPerSecond kSendChannel{13.85e9};
constexpr BytesPerSecond kSendChannelTma{21.15e9};

constexpr std::int64_t kPairwiseChannels = 32;

// A hop inside a machine took this where NCCL's tables and the measured curves were made: one hop
// of LL. Between machines it is usual_latency().
Seconds usual_scale_up_latency(ScaleUp scale_up) {
  return scale_up == ScaleUp::kPcie ? 1.0_us : 0.6_us;
}

// DeepEP moves rows by loads and stores. A line through what 20 of its SMs combine in bf16 among 8
// GPUs, 512 to 32,768 tokens of 2,048 to 7,168 (ai-dynamo/aiconfigurator 095f58a51c4c, deepep
// tables; a rank's own tokens do not count): 61 us and 14.0 GB/s an SM on H100, 60 and 14.0 on
// H200, 73 and 14.9 on B200, 73 and 15.2 on B300, 59 and 17.3 on GB200, 58 and 17.5 on GB300. Half
// of the calls are within 6 to 18 % of it.
struct StoreKernels {
  Seconds base;
  BytesPerSecond rate;  // of one SM
};
StoreKernels store_kernels(const Accelerator& accelerator) {
  const bool blackwell = nccl_generation(accelerator.architecture) == NcclGeneration::kBlackwell;
  return blackwell ? StoreKernels{66.0_us, BytesPerSecond(16.2e9)}
                   : StoreKernels{61.0_us, BytesPerSecond(14.0e9)};
}
// AMD's kernels of the same kind (MORI) are bound by xGMI as soon as they have some tens of compute
// units: a line through what 56 to 72 of them combine in bf16 among 8 MI350X, 64 to 4,096 tokens of
// 7,168 (ROCm/mori@1084b514, ep8_mi350x_tuning_results.md), is 19 us and 388 GB/s, 0.96 of
// what RCCL counts on.
constexpr Seconds kMoriBase = 19.0_us;
// Between two nodes of 8 MI355X 512 and 65,536 tokens in bf16 lie on a line of 87 us and 44.6 GB/s
// of a NIC of 50 (ROCm/mori@ac97b1d6, EP16.en.md).
constexpr Seconds kMoriRemote = 68.0_us;
constexpr double kMoriNicPart = 44.6 / 50;

// SMs of HybridEP, whose rows the engine of an SM moves (NVIDIA/Megatron-LM: moe_hybridep_num_sms).
constexpr std::int64_t kExchangeSms = 16;

}  // namespace

CollectiveModel::CollectiveModel(const ClusterSpec& cluster, const GroupShape& group,
                                 bool local_pair, const ClusterSpec& tuned_for)
    : cluster_(cluster),
      tuned_for_(tuned_for),
      group_(group),
      graph_(nccl_graph(tuned_for, group)),
      local_pair_(local_pair) {
  STEPCAST_ASSERT(group.ranks >= 2, "nobody to communicate with");
}

NcclEstimate CollectiveModel::estimate(CollectiveKind kind, Bytes size, DataType type) const {
  NcclEstimate result = kind == CollectiveKind::kAllToAll ? all_to_all()
                        : kind == CollectiveKind::kSendReceive
                            ? send(size)
                            : as_measured(kind, nccl_choice(graph_, kind, size, type), size);
  result.latency =
      std::max(result.latency + wires(result), Seconds()) + between_sites(kind, result);
  return result;
}

// A message waits for the way between sites as often as the algorithm takes it, one after the
// other: a ring once for each site and round, a tree up and down where its branches of the sites
// meet, all others once. No hop counts that the algorithm does not have.
Seconds CollectiveModel::between_sites(CollectiveKind kind, const NcclEstimate& estimate) const {
  if (group_.sites < 2) return Seconds();
  const double sites = static_cast<double>(group_.sites);
  const double domains = static_cast<double>(group_.domains);
  const double rounds = kind == CollectiveKind::kAllReduce ? 2 : 1;
  double crossings = 1;
  switch (estimate.algorithm) {
    case Algorithm::kRing:
      crossings = rounds * std::min(domains - 1, sites);
      break;
    case Algorithm::kTree:
    case Algorithm::kNvlsTree:
      crossings = 2 * std::min(std::floor(std::log2(domains)), std::ceil(std::log2(sites)));
      break;
    case Algorithm::kPat:
      crossings = std::min(std::ceil(std::log2(domains)), sites);
      break;
    case Algorithm::kNvls:
    case Algorithm::kPairwise:
    case Algorithm::kDirect:
      break;
  }
  return crossings * cluster_.wan_latency;
}

// Returns by how much hops of an algorithm take longer here than usual. Latency 0: not stated.
Seconds CollectiveModel::wires(const NcclEstimate& estimate) const {
  Seconds local, network;
  if (cluster_.scale_up_latency.value() > 0) {
    local = cluster_.scale_up_latency - usual_scale_up_latency(cluster_.scale_up);
  }
  if (cluster_.network_latency.value() > 0) {
    network = cluster_.network_latency - usual_latency(cluster_.network) +
              static_cast<double>(group_.switch_links) * cluster_.switch_latency;
  }
  return estimate.local_hops * local + estimate.network_hops * network;
}

NcclEstimate CollectiveModel::asymptote(CollectiveKind kind) const {
  if (kind == CollectiveKind::kAllToAll) return all_to_all();
  if (kind == CollectiveKind::kSendReceive) return send(Bytes(1e15));
  return as_measured(kind, nccl_asymptote(graph_, kind), kEndlessMessage);
}

// A version's tables say what NCCL believes of an algorithm and so which one it takes. The wires
// are as fast under each of them: a price has the terms by which curves were made, those of no
// stated version.
NcclEstimate CollectiveModel::as_measured(CollectiveKind kind, NcclEstimate choice,
                                          Bytes size) const {
  if (graph_.settings.minor == 0) return choice;
  NcclGraph usual = graph_;
  usual.settings.minor = 0;
  const auto priced = nccl_estimate(usual, kind, choice.algorithm, choice.protocol, size);
  if (!priced) return choice;  // what only a stated version has
  choice.latency = priced->latency;
  choice.bandwidth = priced->bandwidth;
  return choice;
}

Bytes CollectiveModel::step(CollectiveKind kind, Algorithm asymptotic, Bytes size) const {
  if (kind == CollectiveKind::kSendReceive) return size;
  const double ranks = static_cast<double>(graph_.ranks);
  if (kind == CollectiveKind::kAllToAll) return size * ((ranks - 1) / ranks);
  const double channels = static_cast<double>(graph_.ring.count);
  return asymptotic == Algorithm::kRing ? size / (channels * ranks) : size / channels;
}

CollectiveModel CollectiveModel::inside() const {
  GroupShape members = group_;
  members.ranks = members.smallest = group_.largest;
  members.domains = 1;
  members.nics = members.switch_links = 0;
  members.sites = 1;
  members.nic_left = 1;
  return {cluster_, members, true, tuned_for_};
}

BytesPerSecond CollectiveModel::network_share() const {
  return cluster_.nic_bandwidth * group_.nic_left *
         static_cast<double>(std::max<std::int64_t>(group_.nics, 1));
}

// Every rank keeps 1/n of its `size` bytes and sends 1/n to each other one.
NcclEstimate CollectiveModel::all_to_all() const {
  const double ranks = static_cast<double>(group_.ranks);
  const double local = static_cast<double>(group_.largest);
  const double seconds_local =
      local < 2
          ? 0
          : (local - 1) / ranks / nccl_group_bandwidth(cluster_, group_, group_.largest).value();
  const double seconds_network =
      group_.domains == 1 ? 0 : local * (ranks - local) / ranks / network_share().value();
  NcclEstimate result;
  result.algorithm = Algorithm::kPairwise;
  result.latency =
      kPairwiseBase + kPairwiseLocalPeer * (local - 1) + kPairwiseRemotePeer * (ranks - local);
  result.local_hops = group_.largest > 1 ? 1 : 0;
  result.network_hops = group_.domains > 1 ? 1 : 0;
  result.bandwidth = BytesPerSecond(1 / std::max(seconds_local, seconds_network));
  result.channels = kPairwiseChannels;
  return result;
}

// Across the network a token goes to the GPU of its own place in each domain, which hands it on.
NcclEstimate CollectiveModel::exchange_once(std::int64_t copies, std::int64_t store_sms,
                                            std::int64_t held_sms) const {
  const double k = static_cast<double>(copies);
  const double ranks = static_cast<double>(group_.ranks);
  const double local = static_cast<double>(group_.largest);
  const double domains = static_cast<double>(group_.domains);
  const double over_links = distinct_destinations(ranks, k) * (local - 1) / local / k;
  const double over_network =
      group_.domains == 1 ? 0
                          : local * distinct_destinations(domains, k) * (domains - 1) / domains / k;
  double links = (nccl_scale_up_bandwidth(cluster_) * group_.scale_up_left).value();
  Seconds base = kPairwiseBase + kPairwiseLocalPeer * (local - 1), remote = kPairwiseRemotePeer;
  double network = network_share().value();
  if (store_sms > 0 && graph_.rccl) {
    base = kMoriBase;
    remote = kMoriRemote;
    network *= kMoriNicPart;
  } else if (store_sms > 0) {
    const StoreKernels stores = store_kernels(cluster_.accelerator);
    links = std::min(links, static_cast<double>(store_sms) * stores.rate.value());
    base = stores.base;
  }
  NcclEstimate result;
  result.algorithm = Algorithm::kPairwise;
  result.latency = base + remote * (domains - 1) + between_sites(CollectiveKind::kAllToAll, result);
  result.bandwidth = BytesPerSecond(1 / std::max(over_links / links, over_network / network));
  result.channels = store_sms > 0 ? store_sms : held_sms > 0 ? held_sms : kExchangeSms;
  return result;
}

NcclEstimate CollectiveModel::send(Bytes size) const {
  const bool by_tma = traits_of(cluster_.accelerator.architecture).moves_by_tma;
  NcclEstimate result;
  result.algorithm = Algorithm::kDirect;
  result.channels =
      nccl_send_channels(tuned_for_, size, !local_pair_, group_.ranks, group_.domains, group_.nics);
  result.latency = kPairwiseBase + (local_pair_ ? kPairwiseLocalPeer : kPairwiseRemotePeer);
  (local_pair_ ? result.local_hops : result.network_hops) = 1;
  if (!local_pair_) {
    result.bandwidth = network_share();
    return result;
  }
  BytesPerSecond link = nccl_scale_up_bandwidth(cluster_) * group_.scale_up_left;
  if (cluster_.scale_up == ScaleUp::kNvlinkMesh) {
    link = link / static_cast<double>(std::max<std::int64_t>(cluster_.gpus_per_node - 1, 1));
  }
  const BytesPerSecond channel = by_tma ? kSendChannelTma : kSendChannel;
  result.bandwidth = std::min(link, static_cast<double>(result.channels) * channel);
  return result;
}

}  // namespace stepcast
