// SPDX-License-Identifier: Apache-2.0
#include "cost/memory_bound_cost.h"

#include "cost/profile.h"
#include "operation/memory_bound.h"

namespace stepcast {
namespace {

double factor_of(const MemoryFit& fit, const MemoryBound& kernel, bool in_steps) {
  const auto kind = static_cast<std::size_t>(kernel.kind);
  if (in_steps && kernel.bytes_in_steps > 0) return fit.step_factor[kind];
  return fit.kind_factor[kind] * (kernel.backward ? fit.backward_factor[kind] : 1);
}

}  // namespace

Bytes traffic_of(const MemoryBound& kernel, bool in_steps) {
  return Bytes(in_steps && kernel.bytes_in_steps > 0 ? kernel.bytes_in_steps : kernel.bytes);
}

Seconds memory_bound_time(const MemoryFit& fit, const Accelerator& accelerator,
                          const MemoryBound& kernel, bool in_steps) {
  const BytesPerSecond rate = accelerator.memory_bandwidth * fit.fraction;
  const double kernels = in_steps ? static_cast<double>(kernel.launches) : 1.0;
  return Seconds(fit.overhead_s) * kernels + Bytes(fit.half_bytes) / rate +
         traffic_of(kernel, in_steps) * factor_of(fit, kernel, in_steps) / rate;
}

}  // namespace stepcast
