// SPDX-License-Identifier: Apache-2.0
// Traces of forecasts for tests, as the program writes them, with a fault planted in their events.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diagnose/step_diagnosis.h"
#include "report/trace.h"
#include "scenario_from.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::testing {

inline Prediction traced_prediction(const Scenario& scenario) {
  PredictOptions options;
  options.trace = true;
  auto out = predict(scenario, source_folders(), options);
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Prediction{};
}

inline Trace forecast_trace(const Scenario& scenario) {
  auto out = trace_of(trace_json(scenario, traced_prediction(scenario)).text(), "made.json");
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Trace{};
}

// A fault takes so much more time at this instant.
struct Delay {
  double at_us = 0, longer_us = 0;
};

inline double delayed(const std::vector<Delay>& delays, double time_us, bool also_at) {
  double out = time_us;
  for (const Delay& one : delays) {
    if (one.at_us < time_us || (also_at && one.at_us <= time_us)) out += one.longer_us;
  }
  return out;
}

// Each work for which `slows` says more than 1 takes so many times its time, and everything that
// begins behind its end comes later.
inline Trace slowed(Trace trace,
                    const std::function<double(const Trace&, const TraceWork&)>& slows) {
  std::vector<Delay> delays;
  std::vector<double> factors;
  for (const TraceWork& work : trace.works) {
    const double factor = slows(trace, work);
    factors.push_back(factor);
    if (factor > 1) delays.push_back({work.end_us, (factor - 1) * (work.end_us - work.begin_us)});
  }
  double all = 0;
  for (const Delay& one : delays) all += one.longer_us;
  std::vector<TraceWork> works = trace.works;
  for (std::size_t i = 0; i < works.size(); ++i) {
    const double length = factors[i] * (works[i].end_us - works[i].begin_us);
    works[i].begin_us = delayed(delays, works[i].begin_us + 1e-6, true) - 1e-6;
    works[i].end_us = works[i].begin_us + length;
  }
  trace.works = std::move(works);
  for (TraceStep& step : trace.steps) step.end_us += all;
  return trace;
}

// The host is late: so long before each work that `is_late` names, nothing is launched.
inline Trace with_gaps(Trace trace, double gap_us,
                       const std::function<bool(const Trace&, const TraceWork&)>& is_late) {
  std::vector<Delay> delays;
  for (const TraceWork& work : trace.works) {
    if (is_late(trace, work)) delays.push_back({work.begin_us, gap_us});
  }
  const std::vector<TraceWork> before = trace.works;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double length = before[i].end_us - before[i].begin_us;
    trace.works[i].begin_us = delayed(delays, before[i].begin_us, true);
    trace.works[i].end_us = trace.works[i].begin_us + length;
  }
  for (TraceStep& step : trace.steps) {
    step.end_us += gap_us * static_cast<double>(delays.size());
  }
  return trace;
}

// The traces of two ranks of one group that do everything together, one after the other, while the
// second computes `slower` times as long: the first waits in every collective until it comes.
inline std::pair<Trace, Trace> with_straggler(const Trace& trace, std::int64_t second,
                                              double slower) {
  std::pair<Trace, Trace> out{trace, trace};
  out.first.works.clear();
  out.second.works.clear();
  out.second.devices = {second};
  double first_us = 0, second_us = 0, end_us = 0;
  for (const TraceWork& work : trace.works) {
    const double length = work.end_us - work.begin_us;
    TraceWork a = work, b = work;
    a.begin_us = first_us;
    b.begin_us = second_us;
    if (work.message >= 0) {
      first_us = second_us = std::max(first_us, second_us) + length;
    } else {
      first_us += length;
      second_us += slower * length;
    }
    a.end_us = first_us;
    b.end_us = second_us;
    end_us = std::max(first_us, second_us);
    out.first.works.push_back(a);
    out.second.works.push_back(b);
  }
  for (Trace* one : {&out.first, &out.second}) {
    one->steps = {{0, one->devices.front(), 0, end_us}};
  }
  return out;
}

// The diagnosis of a run whose scenario is `stated`.
inline Diagnosis diagnosis_of(const Scenario& stated, const std::vector<Trace>& traces) {
  const Prediction prediction = traced_prediction(stated);
  auto out = diagnose(stated, prediction, forecast_trace(stated), traces);
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Diagnosis{};
}

}  // namespace stepcast::testing
