// SPDX-License-Identifier: Apache-2.0
// The price of a run of blocks as one macro activity. A run of kernels that the host queues ends at
// max(s + gpu, h + floor), s = when the streams are free, h = when the host starts issuing: exact
// in (max, +) algebra, and runs compose associatively (docs/design/005-macro-activities.md).
#pragma once

#include <algorithm>
#include <array>

#include "cost/kernel_cost.h"
#include "cost/provenance.h"
#include "layout/axis_group.h"

namespace stepcast {

template <class Time>
struct QueuedCost {
  Time gpu{};    // kernels and collectives of blocks back to back
  Time floor{};  // max over kernels of (host time to issue up to it + kernels from it on)
  Time host{};   // to issue all

  // `next` runs `times` in a row after this. The longest way through n equal runs leaves the host
  // at the first or at the last one, because what each in between adds is either the kernels or the
  // host's time.
  void append(const QueuedCost& next, double times = 1) {
    if (times <= 0) return;
    const Time floor_of_row = next.floor + std::max(next.gpu, next.host) * (times - 1);
    floor = std::max(floor + next.gpu * times, host + floor_of_row);
    gpu += next.gpu * times;
    host += next.host * times;
  }
};

struct RunCost : QueuedCost<Seconds> {
  Seconds core_idle;  // of `gpu`, that a rank on a processor leaves its core to others

  // Parts of `gpu`.
  Seconds compute, recompute, optimizer;
  std::array<Seconds, kTrafficKinds> by_traffic{};  // collectives
  Seconds gemm, attention, memory_bound;            // of `compute`
  // Of `gemm` and `attention`, what their FLOPs take at the dense peak.
  Seconds ideal_gemm, ideal_attention;
  Flops flops;                                      // executed, attention as the kernel counts it
  Jitter jitter;                                    // of a kernel
  std::array<Seconds, kCurves> by_curve{};
  std::array<Seconds, kProvenances> by_provenance{};

  Seconds& communication(AxisGroup group);  // the part that its collectives belong to
  Seconds communication(TrafficKind kind) const {
    return by_traffic[static_cast<std::size_t>(kind)];
  }

  void append(const RunCost& next);  // `next` runs after this
  void count(const RunCost& more);   // its parts and what the host spends, without its time
  // A part of this: what is left of the time of an operation beside others, in which they waited.
  // With more time than it takes it is slowed: the same FLOPs in more time.
  RunCost exposed(Seconds part) const;
  void wait(AxisGroup group, Seconds lag);  // until the last member of the collective has come

 private:
  void add_parts(const RunCost& more);
};

}  // namespace stepcast
