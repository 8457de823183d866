// SPDX-License-Identifier: Apache-2.0
// How sure a step time and a peak of memory are (docs/design/010-intervals.md). The interval is as
// wide as the errors of the recorded runs that are most like the scenario. A mechanism that hardly
// any run exercised, or runs of one source alone, adds to the upper side, because what is not
// modelled takes time. Each cost curve has one log-error that everything priced from it shares.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "cost/provenance.h"
#include "predict/measured_errors.h"

namespace stepcast {

struct Prediction;

struct Interval {
  Seconds low, high;                  // the central 90 %
  std::vector<std::string> unproven;  // mechanisms that too few runs or sources exercised
};

Interval interval90(Seconds step_time, const std::array<Seconds, kCurves>& time_by_curve,
                    const std::array<double, kCurves>& sigma,
                    const std::vector<std::string>& mechanisms, const MeasuredErrors& errors);

struct MemoryInterval {
  ByteCount low, high;  // the central 90 %
};

// How sure a peak on a device is: never narrower than what the caching allocator may take.
MemoryInterval memory_interval90(ByteCount peak, const std::vector<std::string>& mechanisms,
                                 const MeasuredErrors& errors);

// The step time that is not exceeded with this probability: the forecast at 0.5, between it and the
// ends of its interval as two halves of normal distributions of the logarithm.
Seconds quantile(const Prediction& prediction, double probability);

// No forecast's quantile at 0.5 or more is below its step time times this.
double least_rise(double probability);

}  // namespace stepcast
