// SPDX-License-Identifier: Apache-2.0
#include "cost/memory_bound_cost.h"

namespace stepcast {
namespace {

// Chains whose links hand a whole tensor on; other kinds' extra launches reduce partial results.
bool is_chain(MemoryBoundKind kind) {
  return kind == MemoryBoundKind::kActivation || kind == MemoryBoundKind::kDropoutAdd ||
         kind == MemoryBoundKind::kRotary;
}

constexpr double kBytesOfIntermediate = 2;  // activations between eager kernels are 16 bit

}  // namespace

Bytes traffic_of(const MemoryBound& kernel, bool fused_chains) {
  if (fused_chains || !is_chain(kernel.kind)) return Bytes(kernel.bytes);
  // Each further kernel of an eager chain writes and reads one intermediate tensor.
  const double links = static_cast<double>(kernel.launches - 1);
  return Bytes(kernel.bytes +
               links * 2 * kBytesOfIntermediate * static_cast<double>(kernel.elements));
}

Seconds memory_bound_time(const MemoryFit& fit, const Accelerator& accelerator,
                          const MemoryBound& kernel, bool fused_chains) {
  const BytesPerSecond rate = accelerator.memory_bandwidth * fit.fraction;
  const double factor = fit.kind_factor[static_cast<std::size_t>(kernel.kind)];
  const double kernels = fused_chains ? 1.0 : static_cast<double>(kernel.launches);
  return Seconds(fit.overhead_s) * kernels + Bytes(fit.half_bytes) / rate +
         traffic_of(kernel, fused_chains) * factor / rate;
}

}  // namespace stepcast
