// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_gemm.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/left_out.h"
#include "core/assert.h"
#include "core/statistics.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"

namespace stepcast {
namespace {

constexpr int kFolds = 5;
constexpr double kLeastFraction = 1e-5, kMostFraction = 10;  // that a profile may hold

using Free = FreeParameter<GemmFit>;

// Weak priors keep directions in place that a table does not determine.
const std::vector<Free>& free_shape() {
  static const std::vector<Free> parameters = {
      {[](GemmFit& f) -> double& { return f.efficiency; }, 0.1, 1.2, 0},
      {[](GemmFit& f) -> double& { return f.k_half; }, 1, 1000, 0.1},
      {[](GemmFit& f) -> double& { return f.tile_half; }, 0.5, 200, 0.1},
      {[](GemmFit& f) -> double& { return f.wave_weight; }, 0.02, 1, 0.1},
      {[](GemmFit& f) -> double& { return f.overhead_s; }, 1e-6, 1e-5, 0.3},
      {[](GemmFit& f) -> double& { return f.role_factor[1]; }, 0.7, 1.5, 0.1},
      {[](GemmFit& f) -> double& { return f.role_factor[2]; }, 1, 1.5, 0.1},
      {[](GemmFit& f) -> double& { return f.sustained_factor; }, 1, 1.6, 0.1},
      {[](GemmFit& f) -> double& { return f.sustained_s; }, 2e-5, 2e-2, 0.1},
      {[](GemmFit& f) -> double& { return f.accumulate_exposed; }, 0.05, 1, 0.1}};
  return parameters;
}

const std::vector<Free>& free_scale() {
  static const std::vector<Free> parameters = {
      {[](GemmFit& f) -> double& { return f.efficiency; }, 0.1, 1.2, 0},
      {[](GemmFit& f) -> double& { return f.k_half; }, 1, 1000, 0.3},
      {[](GemmFit& f) -> double& { return f.tile_half; }, 0.5, 200, 0.3},
      {[](GemmFit& f) -> double& { return f.overhead_s; }, 5e-7, 1e-5, 0.3}};
  return parameters;
}

// One core does one tile after the other, and its caches serve operands faster than its memory.
const std::vector<Free>& free_on_core() {
  static const std::vector<Free> parameters = {
      {[](GemmFit& f) -> double& { return f.efficiency; }, 0.001, 1.5, 0},
      {[](GemmFit& f) -> double& { return f.k_half; }, 0.5, 2000, 0.05},
      {[](GemmFit& f) -> double& { return f.overhead_s; }, 1e-8, 1e-3, 0.02},
      {[](GemmFit& f) -> double& { return f.memory_fraction; }, 0.05, 10, 0.05},
      {[](GemmFit& f) -> double& { return f.role_factor[1]; }, 0.3, 3, 0.05},
      {[](GemmFit& f) -> double& { return f.role_factor[2]; }, 0.3, 3, 0.05},
      {[](GemmFit& f) -> double& { return f.accumulate_exposed; }, 0.01, 1, 0.1}};
  return parameters;
}

// A form of short runs, and what the engine does in the same call.
struct ShortRuns {
  GemmFit form;
  double cast_bytes = 0;  // moved at the device's memory bandwidth, for an element of x
};

template <double GemmFit::*kMember>
double& in_form(ShortRuns& runs) {
  return runs.form.*kMember;
}

std::vector<FreeParameter<ShortRuns>> free_in_short_runs(bool casts) {
  std::vector<FreeParameter<ShortRuns>> out = {{in_form<&GemmFit::efficiency>, 0.1, 1.2, 0},
                                               {in_form<&GemmFit::k_half>, 1, 1000, 0.1},
                                               {in_form<&GemmFit::tile_half>, 0.5, 200, 0.1},
                                               {in_form<&GemmFit::wave_weight>, 0.02, 1, 0.1},
                                               {in_form<&GemmFit::overhead_s>, 1e-6, 1e-5, 0.3},
                                               {in_form<&GemmFit::memory_fraction>, 0.3, 1.2, 0.3},
                                               {in_form<&GemmFit::sustained_factor>, 1, 1.6, 0.1},
                                               {in_form<&GemmFit::sustained_s>, 2e-5, 2e-2, 0.1}};
  if (casts) {
    out.push_back({[](ShortRuns& runs) -> double& { return runs.cast_bytes; }, 0.5, 10, 0.3});
  }
  return out;
}

const std::vector<Free>& free_in_training() {
  static const std::vector<Free> parameters = {
      {[](GemmFit& f) -> double& { return f.back_to_back; }, 1, 2, 0},
      {[](GemmFit& f) -> double& { return f.role_factor[1]; }, 0.7, 1.5, 0.1},
      {[](GemmFit& f) -> double& { return f.role_factor[2]; }, 0.7, 1.5, 0.1},
      {[](GemmFit& f) -> double& { return f.accumulate_exposed; }, 0.05, 1, 0.1}};
  return parameters;
}

double log_measured(const GemmSample& sample, const Accelerator& accelerator, DataType precision) {
  return std::log(flops_of(gemm_of(sample, precision)) /
                  (matrix_peak(accelerator, precision).value() * sample.efficiency));
}

// log(predicted/measured) of the form.
std::vector<double> gemm_log_ratios(const GemmFit& fit, const Accelerator& accelerator,
                                    const std::vector<GemmSample>& samples, DataType precision) {
  std::vector<double> out;
  out.reserve(samples.size());
  for (const GemmSample& sample : samples) {
    out.push_back(std::log(gemm_form_time(fit, accelerator, gemm_of(sample, precision)).value()) -
                  log_measured(sample, accelerator, precision));
  }
  return out;
}

GemmFit fit_form(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                 const GemmFit& start, const std::vector<Free>& free, DataType precision) {
  return fit_free(start, free, [&](const GemmFit& trial) {
    return gemm_log_ratios(trial, accelerator, samples, precision);
  });
}

// The family's form with all times scaled by the factor that the median sample shows.
GemmFit scaled(const GemmFit& family, const Accelerator& accelerator,
               const std::vector<GemmSample>& samples, DataType precision) {
  const double factor = std::exp(-median(gemm_log_ratios(family, accelerator, samples, precision)));
  GemmFit out = family;
  out.efficiency = std::clamp(family.efficiency / factor, kLeastFraction, kMostFraction);
  out.memory_fraction = std::clamp(family.memory_fraction / factor, kLeastFraction, kMostFraction);
  out.overhead_s *= factor;
  out.sustained_s *= factor;
  return out;
}

// Samples of one fold, and all others.
struct Split {
  std::vector<GemmSample> training, held_out;
};
Split split(const std::vector<GemmSample>& samples, int fold) {
  Split out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // Neighbouring rows of a table are roles of one layer: stride 7 spreads each over the folds.
    const bool held = static_cast<int>((i * 7 + i / kFolds) % kFolds) == fold;
    (held ? out.held_out : out.training).push_back(samples[i]);
  }
  return out;
}

void add_log_ratios(const KernelCosts& costs, const std::vector<GemmSample>& samples,
                    DataType precision, std::vector<double>& out) {
  for (const GemmSample& sample : samples) {
    const double predicted = costs.price(gemm_of(sample, precision)).time.value();
    out.push_back(std::log(predicted) - log_measured(sample, costs.accelerator(), precision));
  }
}

FitError held_out_error(const Accelerator& accelerator, const std::vector<Split>& splits,
                        const std::vector<GemmFit>& forms, const Neighbourhood& neighbourhood,
                        DataType precision) {
  std::vector<double> ratios;
  for (std::size_t fold = 0; fold < splits.size(); ++fold) {
    Profile profile;
    if (precision == DataType::kFp32) {
      profile.gemm_fp32 = GemmCurve{forms[fold], splits[fold].training, neighbourhood};
    } else {
      profile.gemm = forms[fold];
      profile.gemm_samples = splits[fold].training;
      profile.neighbourhood = neighbourhood;
    }
    add_log_ratios(KernelCosts(accelerator, std::move(profile), KernelStyle::kFused),
                   splits[fold].held_out, precision, ratios);
  }
  return fit_error(ratios);
}

FittedSurface fit_surface(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                          const GemmFit& start, const std::vector<Free>& free, DataType precision) {
  FittedSurface out;
  out.fit = fit_form(accelerator, samples, start, free, precision);
  out.form = fit_error(gemm_log_ratios(out.fit, accelerator, samples, precision));
  std::vector<Split> splits;
  std::vector<GemmFit> forms;
  for (int fold = 0; fold < kFolds; ++fold) {
    splits.push_back(split(samples, fold));
    forms.push_back(fit_form(accelerator, splits.back().training, out.fit, free, precision));
  }
  out.held_out.median = 1e9;
  for (const double reach : {0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0}) {
    for (const double shrinkage : {0.05, 0.1, 0.2, 0.5, 1.0}) {
      const FitError error =
          held_out_error(accelerator, splits, forms, {reach, shrinkage}, precision);
      if (error.median >= out.held_out.median) continue;
      out.held_out = error;
      out.neighbourhood = {reach, shrinkage};
    }
  }
  return out;
}

double cast_seconds(const ShortRuns& runs, const Accelerator& accelerator,
                    const GemmSample& sample) {
  return runs.cast_bytes * static_cast<double>(sample.m * sample.k) /
         accelerator.memory_bandwidth.value();
}

std::vector<double> log_ratios(const ShortRuns& runs, const Accelerator& accelerator,
                               const std::vector<GemmSample>& samples, DataType precision) {
  std::vector<double> out;
  out.reserve(samples.size());
  for (const GemmSample& sample : samples) {
    const double product =
        gemm_form_time(runs.form, accelerator, gemm_of(sample, precision), Pace::kShortRun).value();
    out.push_back(std::log(product + cast_seconds(runs, accelerator, sample)) -
                  log_measured(sample, accelerator, precision));
  }
  return out;
}

// The product's part of each sample, by the form's.
std::vector<GemmSample> without_casts(const ShortRuns& runs, const Accelerator& accelerator,
                                      const std::vector<GemmSample>& samples, DataType precision) {
  std::vector<GemmSample> out = samples;
  for (GemmSample& sample : out) {
    const double product =
        gemm_form_time(runs.form, accelerator, gemm_of(sample, precision), Pace::kShortRun).value();
    sample.efficiency *= 1 + cast_seconds(runs, accelerator, sample) / product;
  }
  return out;
}

// Log errors on `held_out` of the form bent by `samples`.
std::vector<double> surface_log_ratios(const ShortRuns& runs, const Accelerator& accelerator,
                                       const std::vector<GemmSample>& samples,
                                       const std::vector<GemmSample>& held_out,
                                       const Neighbourhood& neighbourhood, DataType precision) {
  Profile profile;
  const GemmCurve curve{runs.form, samples, neighbourhood};
  if (precision == DataType::kFp8) {
    profile.gemm_fp8 = curve;
  } else if (precision == DataType::kFp4) {
    profile.gemm_fp4 = curve;
  } else {
    profile.gemm = curve.fit;
    profile.gemm_samples = curve.samples;
    profile.neighbourhood = curve.neighbourhood;
  }
  const KernelCosts costs(accelerator, std::move(profile), KernelStyle::kFused);
  std::vector<double> out;
  for (const GemmSample& sample : held_out) {
    const double product = costs.price(gemm_of(sample, precision)).time.value();
    out.push_back(std::log(product + cast_seconds(runs, accelerator, sample)) -
                  log_measured(sample, accelerator, precision));
  }
  return out;
}

}  // namespace

GemmTable in_fractions(GemmTable table, const Accelerator& accelerator) {
  const double peak = matrix_peak(accelerator, table.precision).value();
  for (auto* rows : {&table.samples, &table.held_out}) {
    for (GemmSample& sample : *rows) {
      const double flops = flops_of(gemm_of(sample, table.precision));
      sample.efficiency = flops_per_s(table.unit, sample.efficiency, flops, peak) / peak;
    }
  }
  table.unit = TableUnit::kFraction;
  return table;
}

FittedSurface fit_gemm(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                       const GemmFit& start) {
  return fit_surface(accelerator, samples, start, free_shape(), DataType::kBf16);
}

FittedSurface fit_gemm_short_runs(const Accelerator& accelerator, const GemmTable& table,
                                  const GemmFit& start) {
  const DataType type = table.precision;
  const bool casts = type == DataType::kFp8;
  STEPCAST_ASSERT(table.unit == TableUnit::kFraction, "in_fractions() comes first");
  const std::vector<GemmSample>& rows = table.samples;
  // A static cast reads two bytes and writes one.
  const ShortRuns runs =
      fit_free(ShortRuns{start, casts ? 3.0 : 0.0}, free_in_short_runs(casts),
               [&](const ShortRuns& trial) { return log_ratios(trial, accelerator, rows, type); });
  FittedSurface out;
  out.fit = runs.form;
  out.form = fit_error(log_ratios(runs, accelerator, rows, type));
  out.samples = without_casts(runs, accelerator, rows, type);
  out.neighbourhood = {0.5, 0.1, true};
  const auto errors = [&](const std::vector<GemmSample>& kept,
                          const std::vector<GemmSample>& held_out) {
    return surface_log_ratios(runs, accelerator, kept, held_out, out.neighbourhood, type);
  };
  // Eight values follow 400 rows as closely as four fifths of them: the form is kept.
  std::vector<double> cells;
  for (int fold = 0; fold < kFolds; ++fold) {
    const std::vector<GemmSample> training = split(out.samples, fold).training;
    const std::vector<double> of_fold = errors(training, split(rows, fold).held_out);
    cells.insert(cells.end(), of_fold.begin(), of_fold.end());
  }
  out.held_out = fit_error(cells);
  out.other_sizes = fit_error(errors(out.samples, table.held_out));
  return out;
}

GemmFit fit_gemm_in_training(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                             const GemmFit& form) {
  GemmFit start = form;
  start.back_to_back = std::max(form.sustained_factor, 1.001);
  return fit_form(accelerator, samples, start, free_in_training(), DataType::kBf16);
}

FittedSurface fit_gemm_on_core(const Accelerator& accelerator,
                               const std::vector<GemmSample>& samples, const GemmFit& start) {
  return fit_surface(accelerator, samples, start, free_on_core(), DataType::kFp32);
}

FittedSurface scale_gemm(const Accelerator& accelerator, const std::vector<GemmSample>& samples,
                         const GemmFit& family, DataType precision) {
  FittedSurface out;
  out.fit = scaled(family, accelerator, samples, precision);
  out.form = fit_error(gemm_log_ratios(out.fit, accelerator, samples, precision));
  if (samples.size() > 1) {
    out.held_out =
        fit_error(left_out_errors(samples, [&](const auto& others, const auto& left_out) {
          const GemmFit fit = scaled(family, accelerator, others, precision);
          return gemm_log_ratios(fit, accelerator, left_out, precision);
        }));
  }
  return out;
}

FittedSurface fit_gemm_scattered(const Accelerator& accelerator,
                                 const std::vector<GemmSample>& samples, const GemmFit& family,
                                 DataType precision) {
  FittedSurface out;
  out.fit = fit_form(accelerator, samples, family, free_scale(), precision);
  out.form = fit_error(gemm_log_ratios(out.fit, accelerator, samples, precision));
  out.held_out = fit_error(left_out_errors(samples, [&](const auto& others, const auto& left_out) {
    const GemmFit fit = fit_form(accelerator, others, family, free_scale(), precision);
    return gemm_log_ratios(fit, accelerator, left_out, precision);
  }));
  return out;
}

}  // namespace stepcast
