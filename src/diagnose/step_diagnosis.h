// SPDX-License-Identifier: Apache-2.0
// A run's traces beside the forecast of its scenario: where both spend a step, and each gap of more
// than 1 % of the step with its cause. Words are for the report (report/diagnosis_report.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "diagnose/step_parts.h"
#include "traces/profiler_trace.h"

namespace stepcast {

struct Prediction;
struct Scenario;

// Gaps smaller than this share of the measured step are not named.
inline constexpr double kNamedGap = 0.01;

enum class GapCause {
  kBatch,           // the run does more or less work per step than the scenario says
  kStraggler,       // one rank computes longer than the others, who wait for it
  kClocks,          // all kernels take longer alike
  kKernels,         // kernels of one kind take longer or shorter
  kExtraKernels,    // kernels that the forecast does not have
  kSlowLink,        // a collective moves its bytes more slowly
  kMoreBytes,       // a collective moves more or fewer bytes
  kOtherMessages,   // other collectives than the forecast has for this traffic
  kLateMessages,    // collectives wait until the host launches them
  kRankWaits,       // collectives wait for another rank
  kLostOverlap,     // a collective is as fast as forecast, and less of it is hidden
  kMoreOverlap,     // or more of it
  kBesideMessages,  // kernels are slower because more is communicated beside them
  kHost,            // the GPU waits for the host
  kBubble,          // the GPU waits for another stage
  kCopies,          // the GPU waits for copies
  kStarts,          // the GPU is between kernels
  kOtherStreams,    // the GPU waits for its other streams
  kUnknown
};
const char* name_of(GapCause cause);  // "slow_link"

struct Gap {
  GapCause cause = GapCause::kUnknown;
  std::string what = {};                   // the kernels or collectives
  double seconds = 0;                      // of the step: measured less forecast
  double forecast_s = 0, measured_s = 0;   // of what `cause` is about
  double ratio = 1;                        // measured by forecast of what tells the cause
  std::int64_t calls = 0, late_calls = 0;  // measured
  std::optional<RankId> rank = {};         // that is waited for
};

// A part of the step in both.
struct ComparedPart {
  std::string key;    // "exposed_dp"
  std::string words;  // "exposed data parallel"
  double forecast_s = 0, measured_s = 0;
};

struct ComparedKernels {
  std::string words;
  KernelFamily family = KernelFamily::kMemoryBound;
  bool scales = true;  // with the number of micro-batches
  KernelTimes forecast = {}, measured = {};
};

struct ComparedMessages {
  std::string words;
  std::optional<TrafficKind> traffic = {};
  std::string kind = {}, group = {};
  std::int64_t ranks = 0;
  MessageTimes forecast = {}, measured = {};
  double waited_s = 0;    // for other ranks, where their traces are there
  double bus_factor = 1;  // bus bandwidth over algorithm bandwidth
  double bandwidth(const MessageTimes& times, double waited = 0) const {  // B/s on the bus
    const double time = times.busy_s - waited;
    return time > 0 ? times.bytes * bus_factor / time : 0;
  }
};

struct RankRow {
  RankId rank;
  std::int32_t stage = 0;
  double step_s = 0, compute_s = 0, exposed_s = 0, idle_s = 0;
  double ratio = 1;     // of its compute to its forecast's
  double caused_s = 0;  // others waited so long for it, as the diagnosed rank saw
};

struct Diagnosis {
  RankId rank;  // that is set beside its forecast
  std::int32_t stage = 0;
  LabelStyle style = LabelStyle::kFamilies;
  StepSource steps_from = StepSource::kWhole;
  std::int64_t step_number = 0;
  std::vector<double> step_lengths_s;  // of all steps of this rank
  double forecast_s = 0, measured_s = 0;
  double ideal_s = 0;                      // of the work that was measured
  double batch_ratio = 1;                  // of work per step: measured by forecast
  double accounted = 1;                    // share of the measured step with a known reason
  std::vector<ComparedPart> parts;         // add up to both steps
  std::vector<ComparedKernels> kernels;    // the largest difference first
  std::vector<ComparedMessages> messages;  // by traffic
  std::vector<RankRow> ranks;
  std::vector<Gap> gaps;  // the cause that explains others first, then by size
  std::vector<std::string> notes;
  std::vector<Timeline> timelines;  // of the forecast's ranks, then of those measured
  std::size_t forecast_timelines = 0;
  Labels labels;
};

struct DiagnoseRules {
  std::optional<RankId> rank = {};  // set beside its forecast; none: the one that computes longest
  bool as_one_step = false;         // all that a trace holds is one step, whatever its marks say
};

// `forecast` is the forecast's own trace (report/trace.h), read like any other. Errors: traces that
// do not belong to the scenario.
Result<Diagnosis> diagnose(const Scenario& scenario, const Prediction& prediction,
                           const Trace& forecast, const std::vector<Trace>& traces,
                           const DiagnoseRules& rules = {});

}  // namespace stepcast
