// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_attention.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/left_out.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "operation/attention_parts.h"

namespace stepcast {
namespace {

using FreeOfForm = FreeParameter<AttentionFit>;

const std::vector<FreeOfForm>& free_parameters() {
  static const std::vector<FreeOfForm> parameters = {
      {[](AttentionFit& f) -> double& { return f.forward_efficiency; }, 0.05, 1.5, 0},
      {[](AttentionFit& f) -> double& { return f.backward_efficiency; }, 0.05, 1.5, 0},
      {[](AttentionFit& f) -> double& { return f.causal_efficiency; }, 0.5, 1.05, 0.3},
      {[](AttentionFit& f) -> double& { return f.causal_half_length; }, 10, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.length_half; }, 5, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.backward_length_half; }, 5, 2000, 0.1},
      {[](AttentionFit& f) -> double& { return f.blocks_half; }, 0.05, 20, 0.1},
      {[](AttentionFit& f) -> double& { return f.backward_blocks_half; }, 0.05, 20, 1},
      {[](AttentionFit& f) -> double& { return f.head_dim_factor[0]; }, 0.3, 1.5, 0.1},
      {[](AttentionFit& f) -> double& { return f.head_dim_factor[2]; }, 0.3, 1.5, 0.1}};
  return parameters;
}

Attention attention_of(const AttentionSample& sample, bool backward) {
  return {backward,        sample.batch,    sample.heads,  sample.kv_heads, sample.sequence,
          sample.sequence, sample.head_dim, sample.causal, DataType::kBf16};
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

// A form, and what an inference engine does in the same call.
struct EngineCalls {
  AttentionFit form;
  double cache_bytes = 8;  // moved for an element of a key: key and value are read and written
  double call_s = 2e-6;    // beyond the kernel's own fixed part
};

template <double AttentionFit::*kMember>
double& in_form(EngineCalls& calls) {
  return calls.form.*kMember;
}

const std::vector<FreeParameter<EngineCalls>>& free_in_calls() {
  static const std::vector<FreeParameter<EngineCalls>> parameters = {
      {in_form<&AttentionFit::forward_efficiency>, 0.05, 1.5, 0},
      {in_form<&AttentionFit::backward_efficiency>, 0.05, 1.5, 0},
      {in_form<&AttentionFit::causal_efficiency>, 0.5, 1.05, 0.3},
      {in_form<&AttentionFit::causal_half_length>, 10, 2000, 0.1},
      {in_form<&AttentionFit::length_half>, 5, 2000, 0.1},
      {in_form<&AttentionFit::backward_length_half>, 5, 2000, 0.3},
      {in_form<&AttentionFit::blocks_half>, 0.05, 20, 0.1},
      {in_form<&AttentionFit::backward_blocks_half>, 0.05, 20, 1},  // few points tell occupancy
      {in_form<&AttentionFit::back_to_back>, 1, 2, 0.1},
      {[](EngineCalls& c) -> double& { return c.form.head_dim_factor[0]; }, 0.3, 1.5, 0.1},
      {[](EngineCalls& c) -> double& { return c.form.head_dim_factor[2]; }, 0.3, 1.5, 0.1},
      {[](EngineCalls& c) -> double& { return c.cache_bytes; }, 0.5, 40, 0.1},
      {[](EngineCalls& c) -> double& { return c.call_s; }, 1e-7, 3e-5, 0.1}};
  return parameters;
}

// An engine's call takes this beside the kernel.
double beside_kernel(const EngineCalls& calls, const Accelerator& accelerator,
                     const AttentionSample& sample) {
  const double elements =
      static_cast<double>(sample.batch * sample.kv_heads * sample.sequence * sample.head_dim);
  return calls.call_s + calls.cache_bytes * elements / accelerator.memory_bandwidth.value();
}

double kernel_alone(const EngineCalls& calls, const Accelerator& accelerator,
                    const AttentionSample& sample) {
  return attention_form_time(calls.form, accelerator, attention_of(sample, false), Pace::kShortRun)
      .value();
}

std::vector<double> log_ratios(const EngineCalls& calls, const Accelerator& accelerator,
                               const std::vector<AttentionMeasurement>& points) {
  std::vector<double> out;
  out.reserve(points.size());
  for (const AttentionMeasurement& point : points) {
    const double seconds = point.short_run ? kernel_alone(calls, accelerator, point.sample) +
                                                 beside_kernel(calls, accelerator, point.sample)
                                           : predicted(calls.form, accelerator, point);
    out.push_back(std::log(seconds / point.seconds));
  }
  return out;
}

// Log errors on `unseen` of the form bent by `samples`.
std::vector<double> surface_log_ratios(const EngineCalls& calls, const Accelerator& accelerator,
                                       const std::vector<AttentionSample>& samples,
                                       const std::vector<AttentionMeasurement>& unseen) {
  Profile profile;
  AttentionVariant variant;
  variant.name = "fitted";
  variant.fit = calls.form;
  variant.fit.back_to_back = 0;  // prices of short runs
  variant.samples = samples;
  profile.attention_variants = {variant};
  profile.attention_kernel[own_executor()] = variant.name;
  const KernelCosts costs(accelerator, std::move(profile), KernelStyle::kFused, own_executor());
  std::vector<double> out;
  for (const AttentionMeasurement& point : unseen) {
    const double kernel = costs.price(attention_of(point.sample, false)).time.value();
    out.push_back(
        std::log((kernel + beside_kernel(calls, accelerator, point.sample)) / point.seconds));
  }
  return out;
}

std::vector<AttentionMeasurement> measurements(const AttentionTable& table,
                                               const std::vector<AttentionPoint>& points,
                                               const Accelerator& accelerator, double scale) {
  const double peak = matrix_peak(accelerator, DataType::kBf16).value();
  std::vector<AttentionMeasurement> out;
  for (const AttentionPoint& point : points) {
    AttentionMeasurement measurement{point.pass, point.sample, 0, table.short_runs};
    const double work = flops_of(measurement);
    const double measured = flops_per_s(table.unit, point.sample.efficiency, work, peak);
    measurement.sample.efficiency = scale * measured / peak;
    measurement.seconds = work / (scale * measured);
    out.push_back(measurement);
  }
  return out;
}

}  // namespace

double flops_of(const AttentionMeasurement& point) {
  double out = 0;
  if (point.pass != AttentionPass::kBackward) out += flops_of(attention_of(point.sample, false));
  if (point.pass != AttentionPass::kForward) out += flops_of(attention_of(point.sample, true));
  return out;
}

std::vector<AttentionMeasurement> attention_measurements(const AttentionTable& table,
                                                         const Accelerator& accelerator,
                                                         double scale) {
  return measurements(table, table.points, accelerator, scale);
}

std::vector<AttentionMeasurement> held_out_measurements(const AttentionTable& table,
                                                        const Accelerator& accelerator) {
  return measurements(table, table.held_out, accelerator, 1);
}

AttentionCurve fit_attention(const Accelerator& accelerator,
                             const std::vector<AttentionMeasurement>& points,
                             const AttentionFit& family) {
  AttentionFit start = family;
  start.back_to_back = 0;  // nothing tells these points from a step's
  AttentionCurve out;
  out.fit = fit_form(accelerator, points, start);
  out.form = fit_error(log_ratios(out.fit, accelerator, points));
  out.held_out = fit_error(left_out_errors(points, [&](const auto& others, const auto& left_out) {
    return log_ratios(fit_form(accelerator, others, out.fit), accelerator, left_out);
  }));
  for (const AttentionMeasurement& point : points) {
    if (point.pass != AttentionPass::kBoth) out.samples.push_back(point.sample);
  }
  return out;
}

AttentionCurve fit_attention_short_runs(const Accelerator& accelerator,
                                        const std::vector<AttentionMeasurement>& points,
                                        const std::vector<AttentionMeasurement>& unseen,
                                        const AttentionFit& family) {
  EngineCalls start{family};
  start.form.back_to_back = std::max(family.back_to_back, 1.05);
  const EngineCalls calls = fit_free(start, free_in_calls(), [&](const EngineCalls& trial) {
    return log_ratios(trial, accelerator, points);
  });
  AttentionCurve out;
  out.fit = calls.form;
  out.form = fit_error(log_ratios(calls, accelerator, points));
  std::vector<AttentionMeasurement> measured;  // with a sample each, in the same order
  for (const AttentionMeasurement& point : points) {
    if (point.short_run) {
      AttentionSample sample = point.sample;
      sample.efficiency *=
          1 + beside_kernel(calls, accelerator, sample) / kernel_alone(calls, accelerator, sample);
      out.samples.push_back(sample);
      measured.push_back(point);
    } else if (point.pass == AttentionPass::kBackward) {
      out.samples.push_back(point.sample);
      measured.push_back(point);
    }
  }
  std::vector<double> cells;
  constexpr std::size_t kFolds = 5;
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<AttentionSample> kept;
    std::vector<AttentionMeasurement> left_out;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const bool out_of_fit = (i * 7 + i / kFolds) % kFolds == fold;
      if (!out_of_fit) kept.push_back(out.samples[i]);
      if (out_of_fit && measured[i].short_run) left_out.push_back(measured[i]);
    }
    const std::vector<double> of_fold = surface_log_ratios(calls, accelerator, kept, left_out);
    cells.insert(cells.end(), of_fold.begin(), of_fold.end());
  }
  out.held_out = fit_error(cells);
  out.other_sizes = fit_error(surface_log_ratios(calls, accelerator, out.samples, unseen));
  return out;
}

}  // namespace stepcast
