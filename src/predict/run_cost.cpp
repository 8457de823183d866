// SPDX-License-Identifier: Apache-2.0
#include "predict/run_cost.h"

namespace stepcast {
namespace {

template <std::size_t N>
void add(std::array<Seconds, N>& sum, const std::array<Seconds, N>& more) {
  for (std::size_t i = 0; i < N; ++i) sum[i] += more[i];
}

}  // namespace

// As in exposed_part() (predict/attribution.h).
Seconds& RunCost::communication(AxisGroup group) {
  if (group.spans(Axis::kEp)) return expert_parallel;
  return group.spans(Axis::kCp) ? context_parallel : tensor_parallel;
}

void RunCost::append(const RunCost& next) {
  QueuedCost::append(next);
  add_parts(next);
}

void RunCost::count(const RunCost& more) {
  host += more.host;
  add_parts(more);
}

void RunCost::add_parts(const RunCost& more) {
  core_idle += more.core_idle;
  compute += more.compute;
  recompute += more.recompute;
  tensor_parallel += more.tensor_parallel;
  context_parallel += more.context_parallel;
  expert_parallel += more.expert_parallel;
  optimizer += more.optimizer;
  gemm += more.gemm;
  attention += more.attention;
  memory_bound += more.memory_bound;
  flops += more.flops;
  add(by_curve, more.by_curve);
  add(by_provenance, more.by_provenance);
}

void RunCost::wait(AxisGroup group, Seconds lag) {
  for (Seconds* part : {&gpu, &floor, &communication(group), &core_idle,
                        &by_curve[static_cast<std::size_t>(Curve::kExact)],
                        &by_provenance[static_cast<std::size_t>(Provenance::kMeasured)]}) {
    *part += lag;
  }
}

RunCost RunCost::exposed(Seconds part) const {
  RunCost out = *this;
  const double share = gpu.value() > 0 ? part / gpu : 0.0;
  for (Seconds* time : {&out.gpu, &out.core_idle, &out.compute, &out.recompute,
                        &out.tensor_parallel, &out.context_parallel, &out.expert_parallel,
                        &out.optimizer, &out.gemm, &out.attention, &out.memory_bound}) {
    *time *= share;
  }
  for (Seconds& time : out.by_curve) time *= share;
  for (Seconds& time : out.by_provenance) time *= share;
  out.floor = out.host + out.gpu;
  return out;
}

}  // namespace stepcast
