// SPDX-License-Identifier: Apache-2.0
// Splits one step of a rank by what its GPU did: every instant counts once, for the first that
// applies of kernels, communication, copies, and then by why the GPU stood still.
#pragma once

#include <map>

#include "diagnose/rank_timeline.h"

namespace stepcast {

struct MessageTimes {
  std::int64_t calls = 0;
  std::int64_t late_calls = 0;  // launched when the GPU had nothing else left to do
  double bytes = 0;             // of all calls
  double busy_s = 0, exposed_s = 0;
};

struct KernelTimes {
  std::int64_t calls = 0;
  double busy_s = 0;    // each instant once
  double beside_s = 0;  // of that, while something was communicated
};

struct StepParts {
  double length_s = 0;
  std::map<std::int32_t, KernelTimes> kernels;    // by label
  std::map<std::int32_t, MessageTimes> messages;  // by label
  double copies_s = 0;                            // exposed
  double host_s = 0;     // the next kernel was launched only when the one before had ended
  double sync_s = 0;     // of `host_s`: the host itself waited for the device just before
  double bubble_s = 0;   // until something of another stage came
  double starts_s = 0;   // between kernels that were launched in time, shorter than kLongestStart
  double streams_s = 0;  // longer: kernels waited for events of other streams
  double unknown_s = 0;  // nothing tells
  double compute_s() const;
  double exposed_s() const;
  double idle_s() const { return host_s + bubble_s + starts_s + streams_s + unknown_s; }
};

// A GPU takes some microseconds from the end of a kernel to the begin of the next.
inline constexpr double kLongestStart_s = 10e-6;

// `has_stages`: the layout has a pipeline, so whoever stands still may wait for it.
StepParts parts_of(const Timeline& timeline, const Window& step, const Labels& labels,
                   bool has_stages);

}  // namespace stepcast
