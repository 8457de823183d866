// SPDX-License-Identifier: Apache-2.0
// Sources. Latencies and the sizes at which protocols change: tuning models 5 and 6 of ROCm/rccl
// (src/graph/tuning.cc at 9e22c79d), which gfx942 and gfx950 take. The ring's Simple hop across the
// network counts as the tree's: its 320 us there keep RCCL from choosing it and tell of no wire.
// The size from which a ring carries an all-reduce across nodes: ROCm/rocm-systems pull request
// 9406, where 64 MiB go by tree and 128 MiB by ring. In one node gfx942 and gfx950 have no tree.
#include "cost/rccl_tuner.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace stepcast {
namespace {

using RcclByProtocol = std::array<double, 3>;  // LL, LL128, Simple

// Microseconds.
constexpr RcclByProtocol kRcclBase{12, 12, 17};
constexpr RcclByProtocol kXgmiTree{0.9, 0.9, 2.3}, kXgmiRing{0.8, 0.8, 2.1};
constexpr RcclByProtocol kRcclNetTree{10.5, 10.5, 25}, kRcclNetRing{9.5, 9.5, 25};

// Half of what LL sends is flags, and one word of 16 of what LL128 sends.
constexpr RcclByProtocol kRcclPayload{0.5, 15.0 / 16, 1};

constexpr Bytes kRingFrom(128.0 * 1024 * 1024);

// The largest messages of LL and LL128, bytes of the whole collective.
struct RcclLimits {
  double ll, ll128;
};
RcclLimits rccl_limits(CollectiveKind kind, double ranks) {
  if (kind == CollectiveKind::kAllReduce) return {1048576, 9437184};
  if (kind == CollectiveKind::kReduceScatter) return {655360 * ranks, 3211264 * ranks};
  return {98304 * ranks, 5046272 * ranks};
}

// The protocol of that size; where it is forbidden, the next one for longer messages, or else for
// shorter ones.
Protocol rccl_protocol(CollectiveKind kind, Bytes size, double ranks,
                       const std::array<bool, 3>& allowed) {
  const RcclLimits limits = rccl_limits(kind, ranks);
  const std::size_t usual = size.value() <= limits.ll ? 0 : size.value() <= limits.ll128 ? 1 : 2;
  for (std::size_t p = usual; p < allowed.size(); ++p) {
    if (allowed[p]) return static_cast<Protocol>(p);
  }
  for (std::size_t p = usual; p-- > 0;) {
    if (allowed[p]) return static_cast<Protocol>(p);
  }
  return static_cast<Protocol>(usual);
}

bool any(const std::array<bool, 3>& allowed) { return allowed[0] || allowed[1] || allowed[2]; }

}  // namespace

NcclEstimate rccl_choice(const NcclGraph& graph, CollectiveKind kind, Bytes size,
                         const RcclAllowed& allowed) {
  const double ranks = static_cast<double>(graph.ranks);
  const double nodes = static_cast<double>(graph.domains);
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  const double rounds = all_reduce ? 2 : 1;
  const bool may_be_tree = all_reduce && graph.domains > 1 && any(allowed.tree);
  const bool is_tree = may_be_tree && (size < kRingFrom || !any(allowed.ring));

  NcclEstimate out;
  out.algorithm = is_tree ? Algorithm::kTree : Algorithm::kRing;
  out.protocol = rccl_protocol(kind, size, ranks, is_tree ? allowed.tree : allowed.ring);
  const auto p = static_cast<std::size_t>(out.protocol);
  const double local_hops = is_tree ? 2 * (graph.ranks_per_domain() - 1) : rounds * (ranks - nodes);
  const double network_hops = is_tree ? 2 * std::ceil(std::log2(nodes)) : rounds * (nodes - 1);
  const double microseconds = kRcclBase[p] + local_hops * (is_tree ? kXgmiTree : kXgmiRing)[p] +
                              network_hops * (is_tree ? kRcclNetTree : kRcclNetRing)[p];
  out.latency = Seconds(microseconds * 1e-6);
  const double steps = rounds * (kind == CollectiveKind::kBroadcast ? ranks : ranks - 1);
  out.bandwidth = graph.ring.total() * (ranks / steps * kRcclPayload[p]);
  out.channels = graph.run_channels;
  out.steps = is_tree ? local_hops + network_hops : steps;
  out.local_hops = local_hops;
  out.network_hops = out.protocol == Protocol::kSimple ? 2 * network_hops : network_hops;
  return out;
}

}  // namespace stepcast
