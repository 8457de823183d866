// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_kinds.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/statistics.h"

namespace stepcast {
namespace {

constexpr MemoryBoundKind kChains[] = {MemoryBoundKind::kNorm, MemoryBoundKind::kActivation,
                                       MemoryBoundKind::kDropoutAdd, MemoryBoundKind::kRotary};

template <class Which>
std::vector<double> factors_of(const std::vector<KindPoint>& points, const Which& which) {
  std::vector<double> out;
  for (const KindPoint& one : points) {
    if (which(one.point)) out.push_back(one.factor);
  }
  return out;
}

double factor_of(const MemoryFit& fit, const MemoryPoint& point) {
  if (point.in_steps) return fit.step_factor[point.kind];
  return fit.kind_factor[point.kind] * (point.backward ? fit.backward_factor[point.kind] : 1);
}

}  // namespace

bool is_chain(std::size_t kind) {
  return std::ranges::find(kChains, static_cast<MemoryBoundKind>(kind)) != std::end(kChains);
}

KindPoint kind_point(const MemoryPoint& point, double rate, double overhead_s) {
  const double bytes = point.bytes * static_cast<double>(point.rows * point.width);
  const double streaming = point.seconds - overhead_s * static_cast<double>(point.kernels);
  return {point, streaming * rate / bytes};
}

FitError fit_kinds(const std::vector<KindPoint>& points, MemoryFit& fit) {
  fit.step_factor = fit.kind_factor;
  const auto in_steps = factors_of(
      points, [](const MemoryPoint& point) { return point.in_steps && is_chain(point.kind); });
  for (const MemoryBoundKind chain : kChains) {
    if (!in_steps.empty()) fit.step_factor[static_cast<std::size_t>(chain)] = median(in_steps);
  }
  for (std::size_t kind = 0; kind < fit.kind_factor.size(); ++kind) {
    const auto of = [&](bool steps, bool backward) {
      return factors_of(points, [&](const MemoryPoint& point) {
        return point.kind == kind && point.in_steps == steps &&
               (steps || point.backward == backward);
      });
    };
    const auto forward = of(false, false), backward = of(false, true), steps = of(true, false);
    if (!forward.empty()) fit.kind_factor[kind] = median(forward);
    if (!backward.empty()) fit.backward_factor[kind] = median(backward) / fit.kind_factor[kind];
    if (!steps.empty()) fit.step_factor[kind] = median(steps);
  }
  std::vector<double> errors;
  for (const KindPoint& one : points) {
    errors.push_back(std::log(factor_of(fit, one.point) / one.factor));
  }
  return errors.empty() ? FitError{} : fit_error(errors);
}

}  // namespace stepcast
