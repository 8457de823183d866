// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_memory_bound.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/left_out.h"
#include "core/assert.h"
#include "core/statistics.h"
#include "cost/memory_bound_cost.h"
#include "operation/signature.h"

namespace stepcast {
namespace {

// A profile may hold factors within these (cost/profile_curves.cpp).
constexpr double kLeast = 1e-5, kMostShare = 10, kMostFactor = 100;

constexpr std::array<MemoryBoundKind, 6> kStreaming = {
    MemoryBoundKind::kDropoutAdd, MemoryBoundKind::kRotary,     MemoryBoundKind::kTranspose,
    MemoryBoundKind::kCast,       MemoryBoundKind::kAccumulate, MemoryBoundKind::kFill};

// Forward and backward passes of a kind are different kernels: a norm's backward pass has sums for
// its weights beside what it streams.
constexpr std::size_t kRates = 2 * kMemoryBoundKinds;
std::size_t rate_of(std::size_t kind, bool backward) { return 2 * kind + (backward ? 1 : 0); }
std::size_t rate_of(const TimedKernel& point) {
  return rate_of(static_cast<std::size_t>(point.kernel.kind), point.kernel.backward);
}

double seconds_per_byte(const TimedKernel& point) {
  return point.seconds / traffic_of(point.kernel, false).value();
}

// Seconds per byte by kind and pass, 0 where there is no point, and the overhead of each kernel.
struct Rates {
  double overhead_s;
  std::array<double, kRates> each{};

  double time(const TimedKernel& point) const {
    return overhead_s + each[rate_of(point)] * traffic_of(point.kernel, false).value();
  }
};

Rates start_of(const std::vector<TimedKernel>& points, double overhead_s) {
  std::array<std::vector<double>, kRates> rates;
  double shortest = points.front().seconds;
  for (const TimedKernel& point : points) {
    rates[rate_of(point)].push_back(seconds_per_byte(point));
    shortest = std::min(shortest, point.seconds);
  }
  Rates out{std::min(overhead_s, shortest / 2), {}};
  for (std::size_t i = 0; i < rates.size(); ++i) out.each[i] = median(rates[i]);
  return out;
}

Rates fit_rates(const std::vector<TimedKernel>& points, const Rates& start) {
  std::vector<FitParameter> parameters = {{start.overhead_s, 1e-9, 1e-3, 0.02}};
  std::vector<std::size_t> fitted;
  for (std::size_t i = 0; i < start.each.size(); ++i) {
    const double rate = start.each[i];
    if (rate == 0) continue;
    fitted.push_back(i);
    // A single point does not determine the overhead, so its rate stays near what the point shows.
    parameters.push_back({rate, rate / 1e3, rate * 1e3, 0.01});
  }
  const auto with = [&](const std::vector<double>& values) {
    Rates out{values[0], {}};
    for (std::size_t i = 0; i < fitted.size(); ++i) out.each[fitted[i]] = values[i + 1];
    return out;
  };
  return with(fit_least_squares(parameters, [&](const std::vector<double>& trial) {
    const Rates rates = with(trial);
    std::vector<double> out;
    out.reserve(points.size());
    for (const TimedKernel& point : points) {
      out.push_back(std::log(rates.time(point) / point.seconds));
    }
    return out;
  }));
}

double reference(const Rates& rates) {
  std::vector<double> streaming, all;
  for (std::size_t i = 0; i < rates.each.size(); ++i) {
    const double rate = rates.each[i];
    if (rate == 0) continue;
    all.push_back(rate);
    const auto* end = kStreaming.end();
    if (std::find(kStreaming.begin(), end, static_cast<MemoryBoundKind>(i / 2)) != end) {
      streaming.push_back(rate);
    }
  }
  return median(streaming.empty() ? all : streaming);
}

MemoryFit form_of(const Rates& rates, const Accelerator& accelerator) {
  MemoryFit out;
  const double bandwidth = accelerator.memory_bandwidth.value();
  out.fraction = std::clamp(1 / (reference(rates) * bandwidth), kLeast, kMostShare);
  out.overhead_s = rates.overhead_s;
  for (std::size_t kind = 0; kind < kMemoryBoundKinds; ++kind) {
    const double forward = rates.each[rate_of(kind, false)];
    const double backward = rates.each[rate_of(kind, true)];
    const double first = forward > 0 ? forward : backward;
    if (first == 0) continue;
    out.kind_factor[kind] = std::clamp(first * bandwidth * out.fraction, kLeast, kMostFactor);
    if (forward > 0 && backward > 0) {
      out.backward_factor[kind] = std::clamp(backward / forward, kLeast, kMostFactor);
    }
  }
  return out;
}

double log_ratio(const MemoryFit& fit, const Accelerator& accelerator, const TimedKernel& point) {
  return std::log(memory_bound_time(fit, accelerator, point.kernel, false).value() / point.seconds);
}

}  // namespace

MemoryCurve fit_memory_bound(const Accelerator& accelerator, const std::vector<TimedKernel>& points,
                             const MemoryFit& start) {
  STEPCAST_ASSERT(!points.empty(), "something was measured");
  MemoryCurve out;
  const Rates rates = fit_rates(points, start_of(points, start.overhead_s));
  out.fit = form_of(rates, accelerator);
  std::vector<double> ratios;
  for (const TimedKernel& point : points) {
    ratios.push_back(log_ratio(out.fit, accelerator, point));
  }
  const std::vector<double> held_out =
      left_out_errors(points, [&](const auto& others, const auto& left_out) {
        std::vector<double> errors;
        if (others.empty()) return errors;
        const Rates rates_of_others = fit_rates(others, start_of(others, start.overhead_s));
        for (const TimedKernel& point : left_out) {
          if (rates_of_others.each[rate_of(point)] == 0) continue;  // no other of its kind
          errors.push_back(log_ratio(form_of(rates_of_others, accelerator), accelerator, point));
        }
        return errors;
      });
  out.form = fit_error(ratios);
  out.held_out = fit_error(held_out);
  out.held_out_points = static_cast<std::int64_t>(held_out.size());
  return out;
}

}  // namespace stepcast
