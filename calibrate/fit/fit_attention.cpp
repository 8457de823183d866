// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_attention.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"

namespace stepcast {
namespace {

using Free = FreeParameter<AttentionFit>;

const std::vector<Free>& free_parameters() {
  static const std::vector<Free> parameters = {
      {[](AttentionFit& f) -> double& { return f.forward_efficiency; }, 0.05, 1.5, 0},
      {[](AttentionFit& f) -> double& { return f.backward_efficiency; }, 0.05, 1.5, 0},
      {[](AttentionFit& f) -> double& { return f.causal_efficiency; }, 0.5, 1.05, 0.3},
      {[](AttentionFit& f) -> double& { return f.causal_half_length; }, 10, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.length_half; }, 5, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.backward_length_half; }, 5, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.blocks_half; }, 0.05, 20, 0.1},
      {[](AttentionFit& f) -> double& { return f.backward_blocks_half; }, 0.05, 20, 0.1},
      {[](AttentionFit& f) -> double& { return f.head_dim_factor[0]; }, 0.3, 1.5, 0.1},
      {[](AttentionFit& f) -> double& { return f.head_dim_factor[2]; }, 0.3, 1.5, 0.1}};
  return parameters;
}

Attention attention_of(const AttentionSample& sample, bool backward) {
  return {backward,        sample.batch,    sample.heads,  sample.kv_heads, sample.sequence,
          sample.sequence, sample.head_dim, sample.causal, DataType::kBf16};
}

// The FLOPs of the passes that the point counts.
double flops(const AttentionMeasurement& point) {
  double out = 0;
  if (point.pass != AttentionPass::kBackward) out += flops_of(attention_of(point.sample, false));
  if (point.pass != AttentionPass::kForward) out += flops_of(attention_of(point.sample, true));
  return out;
}

double predicted(const AttentionFit& fit, const Accelerator& accelerator,
                 const AttentionMeasurement& point) {
  const auto time = [&](bool backward) {
    return attention_form_time(fit, accelerator, attention_of(point.sample, backward)).value();
  };
  return (point.pass != AttentionPass::kBackward ? time(false) : 0) +
         (point.pass != AttentionPass::kForward ? time(true) : 0);
}

std::vector<double> log_ratios(const AttentionFit& fit, const Accelerator& accelerator,
                               const std::vector<AttentionMeasurement>& points) {
  std::vector<double> out;
  out.reserve(points.size());
  for (const AttentionMeasurement& point : points) {
    out.push_back(std::log(predicted(fit, accelerator, point) / point.seconds));
  }
  return out;
}

AttentionFit fit_form(const Accelerator& accelerator,
                      const std::vector<AttentionMeasurement>& points, const AttentionFit& family) {
  // Sums of both passes do not tell them apart: then their ratio is the family's.
  const bool apart = std::any_of(points.begin(), points.end(), [](const auto& point) {
    return point.pass != AttentionPass::kBoth;
  });
  const auto ratio = [](const AttentionFit& fit) {
    return fit.forward_efficiency / fit.backward_efficiency;
  };
  constexpr double kTied = 10;  // a residual of 1 % in the ratio weighs as one of 10 % in a point
  return fit_free(family, free_parameters(), [&](const AttentionFit& fit) {
    std::vector<double> residuals = log_ratios(fit, accelerator, points);
    residuals.push_back(apart ? 0 : kTied * std::log(ratio(fit) / ratio(family)));
    return residuals;
  });
}

}  // namespace

std::vector<AttentionMeasurement> attention_measurements(const AttentionTable& table,
                                                         const Accelerator& accelerator,
                                                         double scale) {
  const double peak = matrix_peak(accelerator, DataType::kBf16).value();
  std::vector<AttentionMeasurement> out;
  for (const AttentionPoint& point : table.points) {
    AttentionMeasurement measurement{point.pass, point.sample, 0};
    const double rate =
        scale * (table.tflops ? point.sample.efficiency * 1e12 : point.sample.efficiency * peak);
    measurement.sample.efficiency = rate / peak;
    measurement.seconds = flops(measurement) / rate;
    out.push_back(measurement);
  }
  return out;
}

AttentionCurve fit_attention(const Accelerator& accelerator,
                             const std::vector<AttentionMeasurement>& points,
                             const AttentionFit& family) {
  AttentionCurve out;
  out.fit = fit_form(accelerator, points, family);
  out.form = fit_error(log_ratios(out.fit, accelerator, points));
  std::vector<double> held_out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<AttentionMeasurement> others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const AttentionFit fit = fit_form(accelerator, others, out.fit);
    held_out.push_back(log_ratios(fit, accelerator, {points[i]}).front());
  }
  out.held_out = fit_error(held_out);
  return out;
}

}  // namespace stepcast
