// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/assert.h"
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/statistics.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

// Looks at the precision a tenth of the samples apart: sorting at each one would cost more than a
// short operation, and every look is a chance to stop on a lucky interval.
constexpr double kLooks = 1.1;
// Disturbed samples are tried again until there were this many times the samples that are due.
constexpr std::int64_t kAttempts = 3;

// Sorted, without what lies beyond the rule's distance above the median.
std::vector<double> without_outliers(std::vector<double> samples, double deviations) {
  std::sort(samples.begin(), samples.end());
  if (deviations <= 0 || samples.empty()) return samples;
  const double middle = median(samples);
  std::vector<double> distances;
  for (const double sample : samples) distances.push_back(std::abs(sample - middle));
  const double mad = median(std::move(distances));
  if (mad <= 0) return samples;  // more than half are equal: the clock's steps say nothing of noise
  const double limit = middle + deviations * 1.4826 * mad;
  samples.erase(std::upper_bound(samples.begin(), samples.end(), limit), samples.end());
  return samples;
}

// The mean of the slower half over that of the other; 1 where there is none.
double ratio_of_halves(const std::vector<double>& values) {
  if (values.size() < 2) return 1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  const double first = mean({values.begin(), middle}), second = mean({middle, values.end()});
  return first > 0 && second > 0 ? std::max(first, second) / std::min(first, second) : 1;
}

// Finds how many calls make a sample long enough for the clock; those on the way are warm-up.
std::int64_t calls_per_sample(const std::function<void()>& function,
                              const MeasurementProtocol& protocol, MeasuringClock& clock) {
  constexpr double kMargin = 1.2;     // the trial itself was as cold as can be
  constexpr double kMostCalls = 1e7;  // for what takes no time at all
  double calls = 1;
  while (true) {
    const double start = clock.now_s();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(calls); ++i) function();
    const double seconds = clock.now_s() - start;
    if (seconds >= protocol.shortest_sample_s || calls >= kMostCalls) {
      return static_cast<std::int64_t>(calls);
    }
    const double factor = kMargin * protocol.shortest_sample_s / std::max(seconds, 1e-12);
    calls = std::min(kMostCalls, std::ceil(calls * std::clamp(factor, 1.1, 10.0)));
  }
}

}  // namespace

Rejected& Rejected::operator+=(const Rejected& more) {
  forced_switch += more.forced_switch;
  waited += more.waited;
  throttled += more.throttled;
  outlier += more.outlier;
  return *this;
}

Disturbed disturbed(const Sample& sample, const RejectionRule& rule) {
  const Disturbance& what = sample.disturbance;
  const double undisturbed_s = sample.seconds - (rule.waiting ? what.waited_s : 0);
  const double bearable_s = rule.fraction * undisturbed_s;
  if (what.throttle_events > 0 || what.frequency_ratio < rule.frequency_ratio) {
    return Disturbed::kThrottled;
  }
  if (static_cast<double>(what.forced_switches) * rule.forced_switch_s > bearable_s) {
    return Disturbed::kForcedSwitch;
  }
  if (rule.waiting && what.waited_s > std::max(rule.shortest_wait_s, bearable_s)) {
    return Disturbed::kWaited;
  }
  return Disturbed::kNo;
}

Sampler::Sampler(MeasurementProtocol protocol)
    : protocol_(std::move(protocol)), next_look_(protocol_.min_samples) {
  STEPCAST_ASSERT(protocol_.min_samples >= 1 && protocol_.max_samples >= protocol_.min_samples,
                  "bounds of the number of samples");
}

void Sampler::add(const Sample& sample) {
  STEPCAST_ASSERT(sample.calls >= 1 && sample.seconds >= 0, "a sample of something");
  const bool warm = warm_ups_ >= protocol_.warm_up_samples && spent_s_ >= protocol_.warm_up_s;
  spent_s_ += sample.seconds;
  if (!warm) {
    ++warm_ups_;
    return;
  }
  all_s_ += sample.seconds;
  all_squares_s2_ += sample.seconds * sample.seconds / static_cast<double>(sample.calls);
  all_calls_ += sample.calls;
  all_.push_back(sample.seconds / static_cast<double>(sample.calls));
  if (enough()) return;
  ++attempts_;
  calls_ = sample.calls;
  switch (disturbed(sample, protocol_.rejection)) {
    case Disturbed::kNo:
      clean_.push_back(sample.seconds / static_cast<double>(sample.calls));
      break;
    case Disturbed::kForcedSwitch:
      ++rejected_.forced_switch;
      break;
    case Disturbed::kWaited:
      ++rejected_.waited;
      break;
    case Disturbed::kThrottled:
      ++rejected_.throttled;
      break;
  }
  decide();
}

void Sampler::decide() {
  const auto n = static_cast<std::int64_t>(clean_.size());
  const bool spent = spent_s_ >= protocol_.budget_s;
  if (n >= protocol_.max_samples) {
    stopped_ = Stop::kSampleLimit;
  } else if (n >= protocol_.min_samples && spent) {
    stopped_ = Stop::kBudget;
  } else if ((spent && attempts_ >= kAttempts * protocol_.min_samples) ||
             attempts_ >= kAttempts * protocol_.max_samples) {
    stopped_ = Stop::kDisturbed;
  }
  if (n < next_look_) return;
  next_look_ = std::max(n + 1, static_cast<std::int64_t>(kLooks * static_cast<double>(n)));
  const Measurement now = result();
  if (now.n < protocol_.min_samples || !now.interval_s) return;
  const double half_width = (now.interval_s->high - now.interval_s->low) / 2;
  if (half_width <= protocol_.target_half_width * now.median_s) stopped_ = Stop::kPrecise;
}

Measurement Sampler::result() const {
  Measurement out;
  out.rejected = rejected_;
  out.stopped = stopped_;
  out.calls_per_sample = calls_;
  const auto kept = without_outliers(clean_, protocol_.rejection.outlier_deviations);
  out.n = static_cast<std::int64_t>(kept.size());
  out.rejected.outlier = static_cast<std::int64_t>(clean_.size()) - out.n;
  if (kept.empty()) return out;
  out.median_s = median(kept);
  out.mean_s = all_s_ / static_cast<double>(all_calls_);
  const double mean_square_s2 = all_squares_s2_ / static_cast<double>(all_calls_);
  out.deviation_s = std::sqrt(std::max(0.0, mean_square_s2 - out.mean_s * out.mean_s));
  out.halves = ratio_of_halves(all_);
  out.p10_s = quantile(kept, 0.1);
  out.p90_s = quantile(kept, 0.9);
  out.interval_s = median_interval(kept);
  return out;
}

Result<Measurement> measure(const std::function<void()>& function,
                            const MeasurementProtocol& protocol, MeasuringClock& clock) {
  const std::int64_t calls = calls_per_sample(function, protocol, clock);
  Sampler sampler(protocol);
  while (!sampler.enough()) {
    SampleTimer timer(clock);
    for (std::int64_t i = 0; i < calls; ++i) function();
    sampler.add(timer.stop(calls));
  }
  const Measurement out = sampler.result();
  if (out.n > 0) return out;
  return failure(
      {ErrorCode::kIllegal,
       fmt::format("all {} samples were disturbed: {} by forced context switches, {} by waits "
                   "for a processor, {} by throttling",
                   out.rejected.total(), out.rejected.forced_switch, out.rejected.waited,
                   out.rejected.throttled),
       "", "", "leave the machine to the measurement"});
}

const char* name_of(Stop stop) {
  static constexpr const char* kNames[] = {"not_yet", "precise", "sample_limit", "budget",
                                           "disturbed"};
  return kNames[static_cast<std::size_t>(stop)];
}

Json measurement_json(const Measurement& measurement) { return json_of(measurement); }
Measurement read_measurement(const JsonValue& value) { return read_object<Measurement>(value); }

Rows Rejected::fields() {
  using F = Rejected;
  static constexpr Row all[] = {
      row<&F::forced_switch>("forced_switch").required(), row<&F::waited>("waited").required(),
      row<&F::throttled>("throttled").required(), row<&F::outlier>("outlier").required()};
  return rows_of<F>(all);
}

Rows Measurement::fields() {
  using F = Measurement;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  constexpr auto time = [](Row one) { return one.required().within(0, kLongestTime_s); };
  static constexpr Row all[] = {
      time(row<&F::median_s>("median_s")),
      time(row<&F::mean_s>("mean_s")),
      time(row<&F::deviation_s>("deviation_s")),
      row<&F::halves>("halves").within(1, kLongestTime_s),
      time(row<&F::p10_s>("p10_s")),
      time(row<&F::p90_s>("p90_s")),
      beside<&F::interval_s>(),
      row<&F::n>("n").required(),
      row<&F::calls_per_sample>("calls_per_sample").required().within(1, kMost),
      row<&F::rejected>("rejected").required(),
      row<&F::stopped>("stopped").required()};
  return rows_of<F>(all);
}

}  // namespace stepcast
