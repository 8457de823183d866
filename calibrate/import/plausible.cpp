// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/plausible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/memory_bound_cost.h"
#include "operation/attention_parts.h"

namespace stepcast {
namespace {

// Data sheets state one peak for a device, and cards run above its clock (H100 SXM: 1980 for 1830
// MHz, 8 %) or have more SMs (B300: 152 for 148, 3 %). The fastest shipped row is 1.11 times its
// peak: attention on a B300.
constexpr double kBeyondPeak = 1.15;
// Links carry what they are rated for, in units that differ by 7 % (10^9 or 2^30).
constexpr double kBeyondLink = 1.1;
// Caches serve small operands several times faster than memory does, on an L40S about six times.
constexpr double kCachesOverMemory = 10;
// Kernels that do little still come within this factor of the rated speed, beside a fixed part.
constexpr double kSlowest = 1000;
constexpr double kFixedOfKernel = 10e-6;  // seconds
constexpr double kFixedOfCollective = 1;  // members may come late
// Over a quarter of an hour at a PFLOP/s. Below it no count of bytes leaves 63 bits.
constexpr double kMostFlops = 1e18;

std::string time_text(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

// `ideal_s` at the rated speed of what `bounds` it; faster by more than `tolerance` cannot be.
std::optional<std::string> why_not(double seconds, double ideal_s, double tolerance, double fixed_s,
                                   const std::string& bound) {
  if (!std::isfinite(seconds) || seconds <= 0) {
    return fmt::format("{} is no time", time_text(seconds));
  }
  if (seconds * tolerance < ideal_s) {
    return fmt::format("{} is {:.3g} times as fast as {}, at which it takes {}", time_text(seconds),
                       ideal_s / seconds, bound, time_text(ideal_s));
  }
  if (seconds > kSlowest * (ideal_s + fixed_s)) {
    return fmt::format("{} is {:.3g} times what it takes at {}", time_text(seconds),
                       seconds / ideal_s, bound);
  }
  return std::nullopt;
}

// A kernel whose arithmetic bounds it from below; memory only tells what is slow, since caches may
// hold its operands.
template <class Bytes>
std::optional<std::string> why_not_compute(const Accelerator& device, DataType type, double flops,
                                           double seconds, const Bytes& bytes_of) {
  if (flops > kMostFlops) return fmt::format("{:.3g} FLOPs are more than any kernel does", flops);
  const double bytes = bytes_of();
  const double compute = flops / matrix_peak(device, type).value();
  const double memory = bytes / device.memory_bandwidth.value();
  return why_not(seconds, compute, kBeyondPeak, kFixedOfKernel + std::max(memory - compute, 0.0),
                 "the device's peak");
}

// Bytes that each GPU has to send or receive at the least, for a byte of nccl-tests' size.
double least_of_gpu(CollectiveKind kind, double ranks, bool in_switch) {
  switch (kind) {
    case CollectiveKind::kAllReduce:  // switches that add up send each byte once
      return in_switch ? 1 : 2 * (ranks - 1) / ranks;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      return 1;
    default:
      return (ranks - 1) / ranks;
  }
}

// Bytes that all GPUs of a domain have to send or receive over its NICs at the least.
double least_of_domain(CollectiveKind kind, double ranks, double domains) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      return 1;
    case CollectiveKind::kAllToAll:
      return ranks / domains * (domains - 1) / domains;
    default:
      return (domains - 1) / domains;
  }
}

}  // namespace

std::optional<std::string> why_implausible(const Accelerator& device, const GemmSample& sample,
                                           DataType operands) {
  const Gemm gemm = gemm_of(sample, operands);
  const double flops = flops_of(gemm);
  return why_not_compute(device, operands, flops,
                         flops / (matrix_peak(device, operands).value() * sample.efficiency),
                         [&] { return traffic_of(gemm).value(); });
}

std::optional<std::string> why_implausible(const Accelerator& device,
                                           const AttentionMeasurement& point) {
  const AttentionSample& s = point.sample;
  return why_not_compute(device, DataType::kBf16, flops_of(point), point.seconds, [&] {
    return traffic_of(Attention{point.pass != AttentionPass::kForward, s.batch, s.heads, s.kv_heads,
                                s.sequence, s.sequence, s.head_dim, s.causal, DataType::kBf16})
        .value();
  });
}

std::optional<std::string> why_implausible(const Accelerator& device, const TimedKernel& point) {
  const double ideal_s = traffic_of(point.kernel, false).value() / device.memory_bandwidth.value();
  return why_not(point.seconds, ideal_s, kCachesOverMemory, kFixedOfKernel, "the device's memory");
}

std::optional<std::string> why_implausible(const ClusterSpec& cluster, CollectiveKind kind,
                                           std::int64_t ranks, std::int64_t nodes,
                                           const CollectiveSample& sample) {
  const auto n = static_cast<double>(ranks);
  const auto domains =
      static_cast<double>((nodes + cluster.nvlink_domain_nodes - 1) / cluster.nvlink_domain_nodes);
  const double bytes = sample.size.value();
  double bandwidth = std::max(cluster.scale_up_bandwidth.value(), cluster.pcie_bandwidth.value());
  double ideal_s = bytes * least_of_gpu(kind, n, cluster.nvls || domains > 1) / bandwidth;
  std::string bound = fmt::format("the link of {:.4g} GB/s of each GPU", bandwidth * 1e-9);
  if (domains > 1 && cluster.nics_per_node > 0) {
    bandwidth = cluster.nic_bandwidth.value() *
                static_cast<double>(cluster.nics_per_node * cluster.nvlink_domain_nodes);
    ideal_s = bytes * least_of_domain(kind, n, domains) / bandwidth;
    bound = fmt::format("the network of {:.4g} GB/s of each domain", bandwidth * 1e-9);
  }
  return why_not(sample.time.value(), ideal_s, kBeyondLink, kFixedOfCollective, bound);
}

}  // namespace stepcast
