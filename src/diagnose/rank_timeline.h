// SPDX-License-Identifier: Apache-2.0
// The work of one rank's GPU over time, in the words of a forecast: what both a trace and a
// forecast's own trace are read as before they are compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "diagnose/forecast_names.h"
#include "operation/phase.h"
#include "traces/profiler_trace.h"

namespace stepcast {

enum class ActivityKind : std::uint8_t { kCompute, kMessage, kCopy };

struct Activity {
  double begin_s = 0, end_s = 0;
  ActivityKind kind = ActivityKind::kCompute;
  std::int32_t label = 0;            // into Labels
  std::optional<double> launched_s;  // the host's call began
  double launch_end_s = 0;           // and ended
  ByteCount bytes = 0;               // of a message, as struct Collective counts them
  std::int32_t product = -1;         // of the trace: kernels of one operator have the same
  double flops = 0;                  // of the product
  std::int32_t micro_batch = -1;
};

// One name for what is compared.
struct Label {
  std::string words;  // "mlp_up, backward", "all-gather over dp"
  KernelFamily family = KernelFamily::kMemoryBound;
  Phase phase = Phase::kForward;
  std::optional<NamedMessage> message = {};
};

class Labels {
 public:
  std::int32_t add(const Label& label);
  const Label& operator[](std::int32_t index) const {
    return all_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<Label> all_;
  std::map<std::string, std::int32_t> by_words_;
};

struct Window {
  std::int64_t number = 0;  // of the profiler's step
  double begin_s = 0, end_s = 0;
  double length() const { return end_s - begin_s; }
};

// A timeline's steps come from one of these.
enum class StepSource : std::uint8_t {
  kMarks,       // ProfilerStep#N
  kRepetition,  // the trace repeats itself (diagnose/step_repetition.h)
  kWhole        // the whole trace counts as one
};

const char* name_of(StepSource source);  // "marks"

struct Timeline {
  RankId rank;
  std::int32_t stage = 0;
  std::vector<Activity> activities;  // by begin
  std::vector<Window> steps;         // at least one
  StepSource steps_from = StepSource::kWhole;
  bool has_launches = false;
  std::vector<Window> host_waits;  // calls in which the host waits for the device
};

// How kernels get their labels, as far as all traces allow.
enum class LabelStyle {
  kOperations,  // name and phase: traces of forecasts
  kProducts,    // products by their shapes, or their order; others by family
  kFamilies,
  kWholePasses  // forward, backward, optimizer: traces of this project's executor
};

// The finest style that the traces allow.
LabelStyle style_for(const std::vector<Trace>& traces, const ForecastNames& names);

// One timeline per rank, by rank. Without marks its steps are found, or with `as_one_step` all of
// it is one. Errors: ranks that the layout does not have, or that stand twice.
Result<std::vector<Timeline>> timelines_of(const std::vector<Trace>& traces,
                                           const ForecastNames& names, LabelStyle style,
                                           Labels& labels, bool as_one_step = false);

}  // namespace stepcast
