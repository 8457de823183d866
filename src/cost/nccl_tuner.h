// SPDX-License-Identifier: Apache-2.0
// NCCL's own cost model: which algorithm and protocol it takes for a message, and the latency and
// bandwidth it expects of them (docs/collectives.md, "Choice"). Formulas and constants are those of
// NVIDIA/nccl v2.28.9-1, src/graph/tuning.cc; in-switch reduction on one node is rated as 2.21 to
// 2.27 do. A version that is stated has its own from 2.18 to 2.30 ("Versions"). Not the price: that
// comes from measured curves (cost/collective_curve.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "core/quantity.h"
#include "operation/collective_kind.h"

namespace stepcast {

enum class Algorithm { kRing, kTree, kNvls, kNvlsTree, kPairwise, kDirect, kPat };
enum class Protocol { kLl, kLl128, kSimple };
const char* name_of(Algorithm algorithm);
const char* name_of(Protocol protocol);

// Channels that the graph search found, and the bandwidth it gave each.
struct NcclChannels {
  std::int64_t count = 0;  // 0: no such graph
  BytesPerSecond intra;    // per channel, inside a domain
  BytesPerSecond inter;    // per channel, across the network

  BytesPerSecond total() const { return static_cast<double>(count) * intra; }
};

// The tuner knows this of a communicator. A "node" of NCCL is an NVLink domain here.
struct NcclGraph {
  NcclGeneration generation = NcclGeneration::kAmpere;
  bool rccl = false;  // AMD's library: other channels, hops and choices, and nothing in switches
  CpuVendor cpu = CpuVendor::kIntel;
  bool nvlink = true;  // ranks of a domain reach each other over NVLink, else over PCIe
  std::int64_t ranks = 1;
  std::int64_t domains = 1;
  NcclChannels ring;                   // trees run on the same channels
  NcclChannels nvls;                   // heads of the in-switch reduction
  std::int64_t run_channels = 1;       // CTAs of a large ring or tree collective
  std::int64_t run_channels_nvls = 0;  // CTAs of an in-switch one
  NcclSettings settings = {};          // version and environment

  double ranks_per_domain() const {
    return static_cast<double>(ranks) / static_cast<double>(domains);
  }
};

struct NcclEstimate {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Seconds latency;
  BytesPerSecond bandwidth;   // nccl-tests' algbw
  std::int64_t channels = 1;  // CTAs that this message takes
  double steps = 1;           // that follow one another, in hops of the slowest kind
  double local_hops = 0;      // of a latency each that follow one another inside domains,
  double network_hops = 0;    // and across the network

  Seconds time(Bytes size) const { return latency + size / bandwidth; }
};

// `bytes` as in Collective. Empty when NCCL has no such variant or cannot use it here.
std::optional<NcclEstimate> nccl_estimate(const NcclGraph& graph, CollectiveKind kind,
                                          Algorithm algorithm, Protocol protocol, Bytes size);

// The variant with the smallest estimate. For all-reduce, all-gather, reduce-scatter and broadcast
// of two or more ranks.
NcclEstimate nccl_choice(const NcclGraph& graph, CollectiveKind kind, Bytes size, DataType type);

inline constexpr Bytes kEndlessMessage(1e15);
// The variant that NCCL takes for messages without end: what bounds the bandwidth.
NcclEstimate nccl_asymptote(const NcclGraph& graph, CollectiveKind kind);

}  // namespace stepcast
