// SPDX-License-Identifier: Apache-2.0
#include "diagnose/work_ratio.h"

#include <cmath>
#include <set>

#include "core/statistics.h"

namespace stepcast {
namespace {

constexpr double kSameWork = 0.02;

// FLOPs of all products, each operator once however many kernels it took.
double product_flops(const ComparedStep& step) {
  std::set<std::int32_t> seen;
  double out = 0;
  for (const Activity& one : step.timeline.activities) {
    if (one.end_s <= step.window.begin_s || one.begin_s >= step.window.end_s) continue;
    if (one.product >= 0 && !seen.insert(one.product).second) continue;
    out += one.flops;
  }
  return out;
}

// Traces of forecasts and of the executor tell each pass's micro-batch.
double micro_batches(const ComparedStep& step) {
  std::set<std::int32_t> seen;
  for (const Activity& one : step.timeline.activities) {
    const bool inside = one.end_s > step.window.begin_s && one.begin_s < step.window.end_s;
    if (inside && one.micro_batch >= 0) seen.insert(one.micro_batch);
  }
  return static_cast<double>(seen.size());
}

// Their size comes as bytes of a call, of activations.
double size_ratio(const StepParts& forecast, const StepParts& measured, const Labels& labels) {
  std::vector<double> ratios;
  for (const auto& [label, times] : forecast.messages) {
    const auto other = measured.messages.find(label);
    const auto& message = labels[label].message;
    if (!message || other == measured.messages.end()) continue;
    const auto traffic = traffic_of(message->group);
    if (!traffic || *traffic == TrafficKind::kData) continue;
    const double before = times.bytes / static_cast<double>(times.calls);
    const double now = other->second.bytes / static_cast<double>(other->second.calls);
    if (before > 0 && now > 0) ratios.push_back(now / before);
  }
  return ratios.empty() ? 1 : median(ratios);
}

}  // namespace

double work_ratio(const ComparedStep& forecast, const ComparedStep& measured, LabelStyle style,
                  const Labels& labels) {
  double out = 1;
  if (style == LabelStyle::kOperations || style == LabelStyle::kWholePasses) {
    const double before = micro_batches(forecast), now = micro_batches(measured);
    if (before > 0 && now > 0) out = now / before;
    out *= size_ratio(forecast.parts, measured.parts, labels);
  } else if (style == LabelStyle::kProducts) {
    const double before = product_flops(forecast), now = product_flops(measured);
    if (before > 0 && now > 0) out = now / before;
  }
  return std::abs(out - 1) > kSameWork ? out : 1;
}

}  // namespace stepcast
