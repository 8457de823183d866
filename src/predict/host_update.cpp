// SPDX-License-Identifier: Apache-2.0
#include "predict/host_update.h"

#include <algorithm>

#include "layout/scenario.h"
#include "program/instruction.h"

namespace stepcast {
namespace {

// A CPU Adam that uses all cores reaches this part of the nominal bandwidth: 1 and 10 billion
// parameters in 0.22 and 2.57 s, each with 28 bytes of fp32 and a rounded copy of 2, on the two
// sockets of a DGX-2, 256 GB/s (Ren et al. 2021, ZeRO-Offload, arXiv 2101.06840, section 6): 0.53
// and 0.46.
constexpr double kReached = 0.49;

// Ranks of the fullest node.
double ranks_of_node(const Scenario& scenario) {
  const ClusterSpec& spec = scenario.cluster.spec;
  return static_cast<double>(std::min(spec.gpus, spec.gpus_per_node));
}

}  // namespace

BytesPerSecond host_update_rate(const Scenario& scenario,
                                const std::optional<HostMemory>& measured) {
  const NodeHost host = host_of(scenario.cluster.spec);
  const double ranks = ranks_of_node(scenario);
  const double share = static_cast<double>(measured ? measured->cores : host.cores) / ranks;
  const std::int64_t stated = scenario.rules.host_threads;
  const double threads = stated > 0 ? std::min(static_cast<double>(stated), share) : share;
  const BytesPerSecond one = measured ? measured->update_one_core : host.core_rate;
  const BytesPerSecond all = measured ? measured->update : host.memory_bandwidth * kReached;
  return std::min(one * threads, all * (1 / ranks));
}

BytesPerSecond host_copy_rate(const Scenario& scenario, BytesPerSecond link,
                              const std::optional<HostMemory>& measured) {
  const bool within = scenario.cluster.spec.accelerator.is_cpu();
  return within && measured ? measured->copy_one_core : link;
}

BytesPerSecond disk_rate(const Scenario& scenario, bool writes) {
  const ClusterSpec& spec = scenario.cluster.spec;
  return (writes ? spec.disk_write : spec.disk_read) * (1 / ranks_of_node(scenario));
}

Seconds host_update_time(const Scenario& scenario, const HostUpdate& update,
                         const std::optional<HostMemory>& measured) {
  Seconds time = Bytes(update.bytes) / host_update_rate(scenario, measured);
  if (update.disk_bytes > 0) {
    const Bytes states(update.disk_bytes);
    time += states / disk_rate(scenario, false) + states / disk_rate(scenario, true);
  }
  return time;
}

}  // namespace stepcast
