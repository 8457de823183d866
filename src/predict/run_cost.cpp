// SPDX-License-Identifier: Apache-2.0
#include "predict/run_cost.h"

#include <algorithm>

#include "core/assert.h"

namespace stepcast {
namespace {

// These parts add up from run to run, beside the arrays.
constexpr Seconds RunCost::*kParts[] = {
    &RunCost::core_idle, &RunCost::compute,   &RunCost::recompute,   &RunCost::optimizer,
    &RunCost::gemm,      &RunCost::attention, &RunCost::memory_bound};
constexpr Seconds RunCost::*kIdeals[] = {&RunCost::ideal_gemm, &RunCost::ideal_attention};

template <std::size_t N>
void add(std::array<Seconds, N>& sum, const std::array<Seconds, N>& more) {
  for (std::size_t i = 0; i < N; ++i) sum[i] += more[i];
}

}  // namespace

Seconds& RunCost::communication(AxisGroup group) {
  const std::optional<TrafficKind> kind = traffic_of(group);
  STEPCAST_ASSERT(kind, "inside a pass the ranks of one stage meet");
  return by_traffic[static_cast<std::size_t>(*kind)];
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
  for (const auto part : kParts) this->*part += more.*part;
  for (const auto part : kIdeals) this->*part += more.*part;
  flops += more.flops;
  add(by_traffic, more.by_traffic);
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
  out.gpu *= share;
  for (const auto time : kParts) out.*time *= share;
  for (const auto time : kIdeals) out.*time *= std::min(share, 1.0);
  for (Seconds& time : out.by_traffic) time *= share;
  for (Seconds& time : out.by_curve) time *= share;
  for (Seconds& time : out.by_provenance) time *= share;
  out.floor = out.host + out.gpu;
  return out;
}

}  // namespace stepcast
