// SPDX-License-Identifier: Apache-2.0
#include "cost/nccl_tuner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/assert.h"
#include "cost/rccl_tuner.h"

namespace stepcast {
namespace {

// Tables of tuning.cc. Microseconds and GB/s (1e9), as there; [LL, LL128, Simple].
using ByProtocol = std::array<double, 3>;

constexpr ByProtocol kBaseTree{6.8, 14.0, 8.4};
constexpr ByProtocol kBaseRing{6.6, 14.0, 8.4};

struct HopLatency {
  ByProtocol tree, ring;
  double nvls, nvls_tree;
};
constexpr HopLatency kNvlinkHop{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, 25, 25};
constexpr HopLatency kPciHop{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, 0, 0};
constexpr HopLatency kNetHop{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, 18, 20.9};

// Rows are by NcclGeneration, columns [1, 2, more than 2 nodes].
using ByGeneration = std::array<std::array<double, 3>, 4>;
constexpr ByGeneration kLlMax{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr ByGeneration kRingLl128Max{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr ByGeneration kTreeLl128Max{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr ByGeneration kTreeMax{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr ByGeneration kNvlsTreeMax{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
constexpr std::array<double, 4> kNvlsEfficiency{0, 0, 0.85, 0.74};

// Entries are by floor(log2(bytes / 64)), 64 B to 256 MiB; they bend tree all-reduces' bandwidth.
using Correction = std::array<double, 23>;
constexpr std::array<Correction, 3> kTreeCorrection{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

constexpr std::array<double, 3> kThreads{512, 640, 512};
constexpr std::array<double, 3> kThreadThreshold{8, 8, 64};  // bytes per thread

constexpr std::int64_t kFirstPat = 23;  // 2.23 has it
constexpr double kPatBase = 8, kPatRank = 2.8, kPatPart = 3.5;

constexpr std::int64_t kUsualVersion = 28;  // where none is stated

constexpr std::array<Algorithm, 5> kAlgorithms{Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls,
                                               Algorithm::kNvlsTree, Algorithm::kPat};
constexpr std::array<Protocol, 3> kProtocols{Protocol::kLl, Protocol::kLl128, Protocol::kSimple};

double gigabytes(BytesPerSecond rate) { return rate.value() * 1e-9; }

// One evaluation: the communicator, the collective, and the shorthands of tuning.cc.
class Tuner {
 public:
  Tuner(const NcclGraph& graph, CollectiveKind kind)
      : graph_(graph),
        all_reduce_(kind == CollectiveKind::kAllReduce),
        gathers_or_scatters_(kind == CollectiveKind::kAllGather ||
                             kind == CollectiveKind::kReduceScatter),
        rooted_(kind == CollectiveKind::kBroadcast),
        version_(graph.settings.minor > 0 ? graph.settings.minor : kUsualVersion),
        generation_(known_generation(graph, version_)),
        nodes_index_(static_cast<std::size_t>(std::min<std::int64_t>(graph.domains, 3) - 1)),
        ranks_(static_cast<double>(graph.ranks)),
        nodes_(static_cast<double>(graph.domains)),
        local_(graph.ranks_per_domain()) {
    steps_ = all_reduce_ ? 2 * (ranks_ - 1) : rooted_ ? ranks_ : ranks_ - 1;
  }

  std::optional<NcclEstimate> estimate(Algorithm algorithm, Protocol protocol, Bytes size) const {
    if (!usable(algorithm, protocol) || (protocol == Protocol::kLl128 && !has_ll128())) {
      return std::nullopt;
    }
    double bandwidth = algorithm_bandwidth(algorithm, protocol);
    if (algorithm == Algorithm::kTree) bandwidth *= tree_correction(protocol, size);
    if (!(bandwidth > 0)) return std::nullopt;
    NcclEstimate result;
    result.algorithm = algorithm;
    result.protocol = protocol;
    result.latency = Seconds(latency(algorithm, protocol, size) * 1e-6);
    result.bandwidth = BytesPerSecond(bandwidth * 1e9);
    result.channels = channels(algorithm, protocol, size);
    result.steps = steps(algorithm);
    count_hops(algorithm, protocol, result);
    return result;
  }

 private:
  // Before 2.25 a Blackwell GPU takes Hopper's rows, and no LL128.
  static std::size_t known_generation(const NcclGraph& graph, std::int64_t version) {
    const auto own = static_cast<std::size_t>(graph.generation);
    return version < 25 ? std::min(own, static_cast<std::size_t>(NcclGeneration::kHopper)) : own;
  }
  bool has_ll128() const {
    return version_ >= 25 || graph_.generation != NcclGeneration::kBlackwell;
  }

  bool usable(Algorithm algorithm, Protocol protocol) const {
    switch (algorithm) {
      case Algorithm::kRing:
        return protocol != Protocol::kLl128 || graph_.nvlink;
      case Algorithm::kTree:
        return all_reduce_ && (protocol != Protocol::kLl128 || graph_.nvlink);
      case Algorithm::kNvls:
        return protocol == Protocol::kSimple && graph_.domains == 1 && !rooted_ &&
               graph_.nvls.count > 0 && (all_reduce_ || version_ >= 19);
      case Algorithm::kNvlsTree:
        return protocol == Protocol::kSimple && graph_.domains > 1 && all_reduce_ &&
               graph_.nvls.count > 0;
      case Algorithm::kPat:
        // Nobody has published a curve of it: without a version the ring stays, whose curves are.
        return protocol == Protocol::kSimple && gathers_or_scatters_ &&
               graph_.domains == graph_.ranks && graph_.settings.minor >= kFirstPat;
      default:
        return false;
    }
  }

  double algorithm_bandwidth(Algorithm algorithm, Protocol protocol) const {
    const double channels = static_cast<double>(graph_.ring.count);
    const double bus =
        channels * gigabytes(graph_.domains <= 2 ? graph_.ring.intra : graph_.ring.inter);
    switch (algorithm) {
      case Algorithm::kRing:
        return ring_bus(protocol, bus, channels) * ranks_ / steps_;
      case Algorithm::kTree:
        return tree_bus(protocol, bus, channels) * 0.5;
      case Algorithm::kNvls:
        return nvls_bandwidth();
      case Algorithm::kNvlsTree:
        return nvls_tree_bandwidth();
      case Algorithm::kPat:
        return bus * (version_ == kFirstPat ? 0.85 : 0.75);
      default:
        return 0;
    }
  }

  double ring_bus(Protocol protocol, double bus, double channels) const {
    if (protocol == Protocol::kLl) {
      const bool is_slow = graph_.domains > 1 || all_reduce_;
      return std::min(ll_max(), bus * (version_ >= 21 ? 0.5 : is_slow ? 1.0 / 4 : 1.0 / 3));
    }
    if (protocol == Protocol::kLl128) {
      const bool is_thin = version_ < 23 && local_ < 2;
      return std::min((is_thin ? 0.7 : 0.92) * bus, channels * ring_ll128_max());
    }
    return bus;
  }

  double tree_bus(Protocol protocol, double bus, double channels) const {
    const double tree = std::min(0.92 * bus, channels * tree_max());
    if (protocol == Protocol::kLl) return std::min(tree / 3.8, ll_max());
    if (protocol == Protocol::kLl128) {
      return std::min(tree * (graph_.domains == 1 ? 7.0 / 9 : 120.0 / 128),
                      channels * tree_ll128_max());
    }
    return tree;
  }

  // Rows of Blackwell moved with the versions.
  bool is_blackwell() const {
    return generation_ == static_cast<std::size_t>(NcclGeneration::kBlackwell);
  }
  double ring_ll128_max() const {
    if (is_blackwell() && version_ < 28) return 73.4;
    if (is_blackwell() && version_ > 28) return 40;
    return kRingLl128Max[generation_][nodes_index_];
  }
  double tree_max() const {
    constexpr std::array<double, 3> kFirst{77.4, 82.8, 72};
    if (is_blackwell() && version_ < 28) return kFirst[nodes_index_];
    return kTreeMax[generation_][nodes_index_];
  }
  double tree_ll128_max() const {
    constexpr std::array<double, 3> kFirst{73.4, 73.4, 58};
    if (is_blackwell() && version_ < 28) return kFirst[nodes_index_];
    return kTreeLl128Max[generation_][nodes_index_];
  }

  // The rate of a head inside a domain, as 2.28 has it.
  double head_rate() const {
    const double heads = static_cast<double>(graph_.nvls.count);
    return gigabytes(graph_.nvls.intra) * kNvlsEfficiency[generation_] * (heads - 1) / heads *
           (all_reduce_ ? 2 : (local_ - 1) / local_);
  }

  // Unless a version is stated: on one node the 2.21 to 2.27 rating, 5/6 of what the heads move. It
  // predicts all ten choices between ring and NVLS that were measured (docs/collectives.md), and
  // the 2.28 one does not.
  double nvls_bandwidth() const {
    const double heads = static_cast<double>(graph_.nvls.count);
    const double speed = gigabytes(graph_.nvls.intra);
    const bool is_stated = graph_.settings.minor > 0;
    if (all_reduce_ && (!is_stated || version_ < 28)) return heads * speed * 5 / 6;
    if (all_reduce_) return heads * head_rate() * ranks_ / steps_;
    if (!is_stated || version_ >= 28) return heads * head_rate();
    if (version_ == 27) return heads * speed * std::min((local_ - 1) / local_, 0.9);
    return heads * speed * (version_ < 23 ? 5.0 / 6 : 1);
  }

  double nvls_tree_bandwidth() const {
    const double heads = static_cast<double>(graph_.nvls.count);
    const double inter = gigabytes(graph_.nvls.inter);
    if (version_ >= 28) {
      double most = kNvlsTreeMax[generation_][nodes_index_];
      if (is_blackwell() && version_ >= 30 && graph_.domains > 2) most = 80;
      const double crossing = inter * (graph_.domains <= 2 ? 2 : 1);
      return heads * std::min({head_rate(), crossing, most}) * ranks_ / steps_;
    }
    const double rate =
        std::min(gigabytes(graph_.nvls.intra), graph_.domains <= 2 ? inter : inter / 2);
    const double ratio = version_ == 18 ? 0.70 * nodes_ / (2 * (nodes_ - 1)) : 5.0 / 6;
    return heads * rate * ratio;
  }

  double ll_max() const {
    std::size_t row = graph_.domains == 1 ? generation_ : graph_.cpu == CpuVendor::kAmd ? 1 : 0;
    if (version_ <= 20) row = std::min<std::size_t>(row, 1);  // Hopper's came with 2.21
    return kLlMax[row][nodes_index_];
  }

  double latency(Algorithm algorithm, Protocol protocol, Bytes size) const {
    const std::size_t p = static_cast<std::size_t>(protocol);
    const HopLatency& hop = graph_.nvlink ? kNvlinkHop : kPciHop;
    switch (algorithm) {
      case Algorithm::kRing:
        return ring_latency(hop, p, size);
      case Algorithm::kTree:
        return tree_latency(p);
      case Algorithm::kNvls:
        return version_ >= 23 || !graph_.nvlink ? hop.nvls : version_ >= 21 ? 25 : 23;
      case Algorithm::kNvlsTree:
        return nvls_tree_latency(hop);
      case Algorithm::kPat:
        return kPatBase + std::floor(std::log2(nodes_)) * kNetHop.tree[p] / kPatPart +
               kPatRank * ranks_;
      default:
        return 0;
    }
  }

  // 2.19 to 2.22 take every hop of a Simple tree for one of 28 us, in a node and across the
  // network; 2.18 has the other versions' hops, and as they a base of 0.
  double tree_latency(std::size_t p) const {
    const bool is_simple = p == static_cast<std::size_t>(Protocol::kSimple);
    double local = (graph_.nvlink ? kNvlinkHop : kPciHop).tree[p], net = kNetHop.tree[p];
    if (is_simple && version_ < 23) {
      local = version_ == 18 ? (graph_.nvlink ? 4 : 6) : 28;
      net = version_ == 18 ? 14 : 28;
    }
    const double base = is_simple && version_ < 23 ? 0 : kBaseTree[p];
    return base + 2 * ((local_ - 1) * local + std::floor(std::log2(nodes_)) * net);
  }

  double nvls_tree_latency(const HopLatency& hop) const {
    if (version_ == 18) return 23 + 2 * (nodes_ - 1) * 19;
    const double own = version_ >= 21 ? hop.nvls_tree : 23;
    return own + 2 * std::floor(std::log2(nodes_)) * (version_ >= 28 ? kNetHop.nvls_tree : 14);
  }

  double ring_latency(const HopLatency& hop, std::size_t p, Bytes size) const {
    const bool simple = p == static_cast<std::size_t>(Protocol::kSimple);
    const bool is_tree_hop = local_ <= 1 && version_ >= 23;
    const double inter = is_tree_hop ? kNetHop.tree[p] : kNetHop.ring[p];
    if (rooted_) {
      const double plain = simple ? hop.tree[p] : hop.ring[p];
      return kBaseRing[p] + steps_ * (graph_.domains > 1 ? inter : plain);
    }
    double overhead = 0;  // of the network proxy, on every hop
    if (graph_.domains > 1) {
      overhead = (graph_.cpu == CpuVendor::kAmd ? 2.0 : 1.0) * (simple ? 3 : 1);
    }
    // An all-reduce counted 2N steps across the network up to 2.22, and 2(N - 1) since.
    double net_steps = graph_.domains == 1 ? 0 : (all_reduce_ ? 2 : 1) * (nodes_ - 1);
    if (all_reduce_ && graph_.domains > 1 && version_ < 23) net_steps = 2 * nodes_;
    double total =
        kBaseRing[p] + (steps_ - net_steps) * std::max(hop.ring[p], overhead) + net_steps * inter;
    const double per_step = size.value() / (static_cast<double>(graph_.ring.count) * ranks_);
    if (simple && all_reduce_ && graph_.domains > 1 && per_step >= 64) {
      total *= generation_ == 0 ? 1.9 : 1.4;
    }
    return total;
  }

  // A ring goes in lock-step, at the pace of its slowest hop. A hop of a tree inside a domain
  // counts for less than one across the network.
  double steps(Algorithm algorithm) const {
    const double tree_hops = 2 * std::floor(std::log2(nodes_));
    if (algorithm == Algorithm::kRing) return steps_;
    if (algorithm == Algorithm::kNvlsTree) return 1 + tree_hops;
    if (algorithm == Algorithm::kPat) return std::ceil(std::log2(nodes_));
    if (algorithm != Algorithm::kTree) return 1;
    const std::size_t p = static_cast<std::size_t>(Protocol::kLl128);
    const double local_hop = (graph_.nvlink ? kNvlinkHop : kPciHop).tree[p] / kNetHop.tree[p];
    return tree_hops + 2 * (local_ - 1) * local_hop;
  }

  // Counts hops whose latencies add up. Across the network data that Simple leaves in a buffer is
  // flushed before it is read, so that tuning.cc counts a NIC's latency twice.
  void count_hops(Algorithm algorithm, Protocol protocol, NcclEstimate& out) const {
    const double tree_hops = 2 * std::floor(std::log2(nodes_));
    switch (algorithm) {
      case Algorithm::kTree:
        out.local_hops = 2 * (local_ - 1);
        out.network_hops = tree_hops;
        break;
      case Algorithm::kNvls:
      case Algorithm::kNvlsTree:
        out.local_hops = 1;
        out.network_hops = tree_hops;
        break;
      case Algorithm::kPat:
        out.network_hops = std::ceil(std::log2(nodes_));
        break;
      default: {
        const double rounds = all_reduce_ ? 2 : 1;
        out.network_hops = rounds * (nodes_ - 1);
        out.local_hops = rounds * (ranks_ - nodes_);
      }
    }
    if (protocol == Protocol::kSimple) out.network_hops *= 2;
  }

  double tree_correction(Protocol protocol, Bytes size) const {
    const double index = std::floor(std::log2(std::max(size.value(), 64.0) / 64));
    if (index >= 23) return 1;
    return kTreeCorrection[static_cast<std::size_t>(protocol)][static_cast<std::size_t>(index)];
  }

  std::int64_t channels(Algorithm algorithm, Protocol protocol, Bytes size) const {
    if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree) {
      return graph_.run_channels_nvls;
    }
    const std::size_t p = static_cast<std::size_t>(protocol);
    double bytes_per_channel = kThreads[p] * kThreadThreshold[p];
    if (algorithm == Algorithm::kRing && protocol == Protocol::kLl) bytes_per_channel *= ranks_;
    const double wanted = std::floor(size.value() / bytes_per_channel);
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::min(wanted, static_cast<double>(graph_.run_channels))), 1,
        graph_.run_channels);
  }

  const NcclGraph& graph_;
  bool all_reduce_;
  bool gathers_or_scatters_;
  bool rooted_;
  std::int64_t version_;  // minor
  std::size_t generation_;
  std::size_t nodes_index_;
  double ranks_, nodes_, local_, steps_ = 1;
};

}  // namespace

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kNvls:
      return "nvls";
    case Algorithm::kNvlsTree:
      return "nvls-tree";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kPat:
      return "pat";
  }
  return "";
}

const char* name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return "LL";
    case Protocol::kLl128:
      return "LL128";
    case Protocol::kSimple:
      return "Simple";
  }
  return "";
}

std::optional<NcclEstimate> nccl_estimate(const NcclGraph& graph, CollectiveKind kind,
                                          Algorithm algorithm, Protocol protocol, Bytes size) {
  STEPCAST_ASSERT(graph.ranks >= 2 && graph.ring.count > 0, "a communicator of one has no tuner");
  return Tuner(graph, kind).estimate(algorithm, protocol, size);
}

namespace {

std::optional<NcclFunction> function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return NcclFunction::kAllReduce;
    case CollectiveKind::kAllGather:
      return NcclFunction::kAllGather;
    case CollectiveKind::kReduceScatter:
      return NcclFunction::kReduceScatter;
    case CollectiveKind::kBroadcast:
      return NcclFunction::kBroadcast;
    default:
      return std::nullopt;
  }
}

// The environment names the first of the tuner's, in its order.
static_assert(static_cast<int>(NcclAlgorithm::kNvlsTree) == static_cast<int>(Algorithm::kNvlsTree));
static_assert(static_cast<int>(NcclProtocol::kSimple) == static_cast<int>(Protocol::kSimple));

// Whether NCCL_ALGO and NCCL_PROTO let it run.
bool is_allowed(const NcclGraph& graph, CollectiveKind kind, Algorithm algorithm,
                Protocol protocol) {
  const auto function = function_of(kind);
  const auto named =
      algorithm == Algorithm::kPat ? NcclAlgorithm::kPat : static_cast<NcclAlgorithm>(algorithm);
  return !function || graph.settings.allows(*function, named, static_cast<NcclProtocol>(protocol));
}

}  // namespace

NcclEstimate nccl_choice(const NcclGraph& graph, CollectiveKind kind, Bytes size, DataType type) {
  STEPCAST_ASSERT(kind != CollectiveKind::kAllToAll, "all-to-all is sends and receives");
  STEPCAST_ASSERT(graph.ranks >= 2 && graph.ring.count > 0, "a communicator of one has no tuner");
  if (graph.rccl) {
    RcclAllowed allowed;
    for (const Protocol protocol : kProtocols) {
      const auto p = static_cast<std::size_t>(protocol);
      allowed.ring[p] = is_allowed(graph, kind, Algorithm::kRing, protocol);
      allowed.tree[p] = is_allowed(graph, kind, Algorithm::kTree, protocol);
    }
    return rccl_choice(graph, kind, size, allowed);
  }
  const bool reduces = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
  const Tuner tuner(graph, kind);
  std::optional<NcclEstimate> best, ring;
  double best_time = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : kAlgorithms) {
    for (const Protocol protocol : kProtocols) {
      const std::optional<NcclEstimate> candidate = tuner.estimate(algorithm, protocol, size);
      if (!candidate) continue;
      if (!is_allowed(graph, kind, algorithm, protocol)) {
        // NCCL runs a ring where nothing else is allowed.
        if (algorithm == Algorithm::kRing && (!ring || candidate->time(size) < ring->time(size))) {
          ring = candidate;
        }
        continue;
      }
      double time = candidate->time(size).value();
      // NCCL keeps 8-bit sums off long rings, where they round once per rank.
      if (reduces && type == DataType::kFp8 && algorithm == Algorithm::kRing && graph.ranks > 8) {
        time *= 1024;
      }
      if (time < best_time) {
        best = candidate;
        best_time = time;
      }
    }
  }
  if (!best) best = ring;
  STEPCAST_ASSERT(best.has_value(), "a ring can always be built");
  return *best;
}

NcclEstimate nccl_asymptote(const NcclGraph& graph, CollectiveKind kind) {
  return nccl_choice(graph, kind, kEndlessMessage, DataType::kBf16);
}

}  // namespace stepcast
