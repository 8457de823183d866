// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_core_attention.h"

#include <algorithm>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "core/statistics.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "operation/attention_parts.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewest = 4;  // samples of a direction that a shape is fitted to
constexpr double kLeastEfficiency = 1e-5,
                 kMostEfficiency = 10;  // efficiencies that a profile may hold

using Samples = std::vector<AttentionSample>;

Attention attention_of(const AttentionSample& s) {
  return {s.backward, s.batch,    s.heads,  s.kv_heads,     s.sequence,
          s.sequence, s.head_dim, s.causal, DataType::kFp32};
}

double measured(const Accelerator& accelerator, const AttentionSample& sample) {
  return flops_of(attention_of(sample)) /
         (matrix_peak(accelerator, DataType::kFp32).value() * sample.efficiency);
}

double log_ratio(const AttentionFit& fit, const Accelerator& accelerator,
                 const AttentionSample& sample) {
  return std::log(attention_form_time(fit, accelerator, attention_of(sample)).value() /
                  measured(accelerator, sample));
}

std::vector<double> log_ratios(const AttentionFit& fit, const Accelerator& accelerator,
                               const Samples& samples) {
  std::vector<double> out;
  out.reserve(samples.size());
  for (const AttentionSample& sample : samples) {
    out.push_back(log_ratio(fit, accelerator, sample));
  }
  return out;
}

Samples of_direction(const Samples& samples, bool backward) {
  Samples out;
  for (const AttentionSample& sample : samples) {
    if (sample.backward == backward) out.push_back(sample);
  }
  return out;
}

bool shows_shape(const Samples& samples) {
  if (samples.size() < kFewest) return false;
  const auto [low, high] =
      std::minmax_element(samples.begin(), samples.end(),
                          [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return high->sequence >= 2 * low->sequence;
}

double& efficiency(AttentionFit& fit, bool backward) {
  return backward ? fit.backward_efficiency : fit.forward_efficiency;
}
double& length_half(AttentionFit& fit, bool backward) {
  return backward ? fit.backward_length_half : fit.length_half;
}

// One direction after the other; they share nothing that is free.
void fit_direction(const Accelerator& accelerator, const Samples& samples, bool backward,
                   AttentionFit& fit) {
  double& scale = efficiency(fit, backward);
  scale = std::clamp(scale * std::exp(median(log_ratios(fit, accelerator, samples))),
                     kLeastEfficiency, kMostEfficiency);
  if (!shows_shape(samples)) return;
  double& half = length_half(fit, backward);
  const std::vector<double> values = fit_least_squares(
      {{scale, kLeastEfficiency, kMostEfficiency, 0}, {std::max(half, 1.0), 0.1, 5000, 0.02}},
      [&](const std::vector<double>& trial) {
        AttentionFit candidate = fit;
        efficiency(candidate, backward) = trial[0];
        length_half(candidate, backward) = trial[1];
        return log_ratios(candidate, accelerator, samples);
      });
  scale = values[0];
  half = values[1];
}

AttentionFit fit_form(const Accelerator& accelerator, const Samples& samples,
                      const AttentionFit& family) {
  AttentionFit out = family;
  // A mask cuts off part of a block. On a core blocks are short, so one half length covers both
  // effects.
  out.causal_half_length = 0;
  for (const bool backward : {false, true}) {
    const Samples own = of_direction(samples, backward);
    if (!own.empty()) fit_direction(accelerator, own, backward, out);
  }
  for (const bool backward : {false, true}) {
    if (!of_direction(samples, backward).empty()) continue;
    AttentionFit before = family;
    efficiency(out, backward) = std::clamp(
        efficiency(before, backward) * efficiency(out, !backward) / efficiency(before, !backward),
        kLeastEfficiency, kMostEfficiency);
  }
  return out;
}

}  // namespace

AttentionCurve fit_attention_on_core(const Accelerator& accelerator, const Samples& samples,
                                     const AttentionFit& family) {
  AttentionCurve out;
  out.fit = fit_form(accelerator, samples, family);
  out.form = fit_error(log_ratios(out.fit, accelerator, samples));
  std::vector<double> held_out;
  for (std::size_t i = 0; i < samples.size() && samples.size() > 1; ++i) {
    AttentionVariant variant;
    variant.name = "held out";
    variant.type = DataType::kFp32;
    variant.samples = samples;
    variant.samples.erase(variant.samples.begin() + static_cast<std::ptrdiff_t>(i));
    variant.fit = fit_form(accelerator, variant.samples, family);
    Profile profile;
    profile.attention_kernel.fill(variant.name);
    profile.attention_variants = {std::move(variant)};
    const KernelCosts costs(accelerator, std::move(profile), KernelStyle::kFused, own_executor());
    const double predicted = costs.price(attention_of(samples[i])).time.value();
    held_out.push_back(std::log(predicted / measured(accelerator, samples[i])));
  }
  out.held_out = fit_error(held_out);
  return out;
}

}  // namespace stepcast
