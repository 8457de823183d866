// SPDX-License-Identifier: Apache-2.0
// The price of a run of blocks as one macro activity. A run of kernels that the host queues ends at
// max(s + gpu, h + floor), s = when the streams are free, h = when the host starts issuing: exact
// in (max, +) algebra, and runs compose associatively (docs/design/005-macro-activities.md).
#pragma once

#include <array>

#include "cost/kernel_cost.h"
#include "cost/provenance.h"

namespace stepcast {

struct RunCost {
  Seconds gpu;    // kernels and tensor-parallel collectives back to back
  Seconds floor;  // max over kernels of (host time to issue up to it + kernels from it on)
  Seconds host;   // to issue all

  Seconds core_idle;  // of `gpu`, that a rank on a processor leaves its core to others

  // Parts of `gpu`.
  Seconds compute, recompute, tensor_parallel, optimizer;
  Seconds gemm, attention, memory_bound;  // of `compute`
  Flops flops;                            // executed, attention as the kernel counts it
  Jitter jitter;                          // of a kernel
  std::array<Seconds, kCurves> by_curve{};
  std::array<Seconds, kProvenances> by_provenance{};

  void append(const RunCost& next);  // `next` runs after this
  void count(const RunCost& more);   // its parts and what the host spends, without its time
  // A part of this: what is left of the time of an operation beside others, in which they waited.
  RunCost exposed(Seconds part) const;
};

}  // namespace stepcast
