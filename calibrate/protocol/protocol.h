// SPDX-License-Identifier: Apache-2.0
// How a duration is measured: warm up, then sample until the median is known to a per cent, leaving
// out what was disturbed and saying so. What is measured is the caller's: one function through
// measure(), or many operations that take turns, each with a Sampler of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/protocol/disturbance.h"
#include "calibrate/protocol/median_interval.h"
#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

struct Rows;  // core/rows.h

// A sample is left out when what disturbed it can have cost more than `fraction` of it.
struct RejectionRule {
  double fraction = 0.02;
  // The cost of one forced switch. It grows with the data that the other thread displaces (Li, Ding
  // and Shen, "Quantifying the cost of context switch", ExpCS 2007); 1 MiB of a core's cache at 20
  // GB/s takes 50 us.
  double forced_switch_s = 50e-6;
  // Shorter waits cannot be told from the resolution of the kernel's accounting.
  double shortest_wait_s = 20e-6;
  bool waiting = true;  // off for what waits on purpose: collectives, many threads
  double frequency_ratio = 0.9;
  // The last resort: beyond median + outlier_deviations * 1.4826 * MAD of the undisturbed (Hampel,
  // JASA 69, 1974; 1.4826 makes the MAD a standard deviation of normal samples). Above only: no
  // disturbance makes anything faster. 0 turns it off.
  double outlier_deviations = 5;
};

struct MeasurementProtocol {
  // Samples before both are reached count for nothing but the budget.
  std::int64_t warm_up_samples = 2;
  double warm_up_s = 0.02;
  std::int64_t min_samples = 10;  // undisturbed
  std::int64_t max_samples = 1000;
  double budget_s = 0.5;             // of a curve point; min_samples go before it
  double target_half_width = 0.01;   // of the median's 95 % interval, of the median
  double shortest_sample_s = 20e-6;  // measure() repeats shorter functions inside one sample
  RejectionRule rejection;
};

enum class Disturbed { kNo, kForcedSwitch, kWaited, kThrottled };
Disturbed disturbed(const Sample& sample, const RejectionRule& rule);

struct Rejected {
  std::int64_t forced_switch = 0;
  std::int64_t waited = 0;
  std::int64_t throttled = 0;
  std::int64_t outlier = 0;
  Rejected& operator+=(const Rejected& more);
  std::int64_t total() const { return forced_switch + waited + throttled + outlier; }
  bool operator==(const Rejected&) const = default;

  static Rows fields();
};

enum class Stop {
  kNotYet,
  kPrecise,      // the target is met
  kSampleLimit,  // max_samples
  kBudget,       // budget_s
  kDisturbed,    // too few undisturbed samples in three times the attempts
};
const char* name_of(Stop stop);  // "sample_limit"

// Times are of one call. A journal has them to the last bit.
struct Measurement {
  double median_s = 0;
  // The mean over all samples after the warm-up, disturbed ones included: what a call costs in a
  // long run. A step of hundreds of operations takes the sum of their means, not of their medians.
  double mean_s = 0;
  double deviation_s = 0;  // standard deviation of those
  // Mean of the slower half of the run over that of the other half. Where they differ, the mean
  // tells of something that came and went, and another run will not find it.
  double halves = 1;
  double p10_s = 0;
  double p90_s = 0;
  std::optional<MedianInterval> interval_s;  // of the median, 95 %; none from fewer than 6 samples
  std::int64_t n = 0;                        // samples behind these
  std::int64_t calls_per_sample = 1;
  Rejected rejected;
  Stop stopped = Stop::kNotYet;

  static Rows fields();
};
Json measurement_json(const Measurement& measurement);
Measurement read_measurement(const JsonValue& value);  // errors go to the value's document

// Collects the samples of one point.
class Sampler {
 public:
  explicit Sampler(MeasurementProtocol protocol);

  // More samples than enough() asks for improve the mean alone.
  void add(const Sample& sample);
  bool enough() const { return stopped_ != Stop::kNotYet; }
  Measurement result() const;  // of the samples so far; n = 0 when none was undisturbed

 private:
  void decide();

  MeasurementProtocol protocol_;
  std::vector<double> clean_;  // seconds per call, in the order they were taken, with outliers
  Rejected rejected_;
  std::int64_t warm_ups_ = 0;
  std::int64_t attempts_ = 0;  // after warm-up
  std::int64_t calls_ = 1;
  std::int64_t next_look_;
  double spent_s_ = 0;                     // in samples, warm-up included
  double all_s_ = 0, all_squares_s2_ = 0;  // of all samples after warm-up, and their calls
  std::int64_t all_calls_ = 0;
  std::vector<double> all_;  // seconds per call of every sample after warm-up
  Stop stopped_ = Stop::kNotYet;
};

// Calls `function` as often as the protocol wants. An error when every sample was disturbed.
Result<Measurement> measure(const std::function<void()>& function,
                            const MeasurementProtocol& protocol, MeasuringClock& clock);

}  // namespace stepcast
