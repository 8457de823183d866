// SPDX-License-Identifier: Apache-2.0
#include "report/log_report.h"

#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/run_words.h"

namespace stepcast {
namespace {

bool is_inside(const LogReport& report) {
  const Prediction& p = report.prediction;
  return report.measured >= p.step_time_low && report.measured <= p.step_time_high;
}

double error_of(const LogReport& report) {
  return report.measured / report.prediction.step_time - 1;
}

const char* try_for(const TimePart& part) {
  switch (part.kind) {
    case TimeKind::kIdeal:
    case TimeKind::kCompute:
    case TimeKind::kRecompute:
      return "clocks and power of the GPUs, library versions, fused kernels";
    case TimeKind::kOptimizer:
      return "whether the optimizer is fused and sharded as the scenario says";
    case TimeKind::kImbalance:
      return "the layers of each stage";
    case TimeKind::kExposed:
      return "nccl-tests on these ranks, and the settings of overlap";
    case TimeKind::kBubble:
      return "schedule, chunks and the number of micro-batches";
    case TimeKind::kOther:
      return "the host: data loader, garbage collection, launches";
  }
  return "";
}

std::string log_verdict(const LogReport& report) {
  const Prediction& p = report.prediction;
  return fmt::format("a step takes {}, its forecast is {} ({} to {}): {}, {} the interval",
                     time_text(report.measured), time_text(p.step_time), time_text(p.step_time_low),
                     time_text(p.step_time_high), signed_percent_text(error_of(report)),
                     is_inside(report) ? "inside" : "outside");
}

// Tells what is otherwise and what to try, the first first.
std::vector<std::string> log_findings(const LogReport& report) {
  std::vector<std::string> out;
  for (const LogDifference& one : report.differences) {
    out.push_back(
        fmt::format("the run is not the scenario's: {} is {} in the log and {} in the "
                    "scenario, so make them one first",
                    one.key, one.in_log, one.in_scenario));
  }
  if (report.before && report.before->state == RunState::kSlower) {
    out.push_back(
        "the run is slower than the last one, whatever the forecast says: look first at what "
        "changed between the two (image, driver, nodes, settings)");
  }
  if (report.before && report.before->larger) {
    out.push_back(
        fmt::format("the run has a peak memory of {} GiB, and the last one had {}",
                    gib_text(static_cast<ByteCount>(report.before->peak_memory_bytes)),
                    gib_text(static_cast<ByteCount>(report.before->peak_memory_before_bytes))));
  }
  if (is_inside(report)) {
    out.push_back(
        "the run is as fast as its forecast; what is left to win is in the list of "
        "stepcast plan");
    return out;
  }
  if (error_of(report) < 0) {
    out.push_back(
        "the run is faster than its forecast: a profile of this machine would tell it "
        "better (stepcast calibrate, or --trace with --fit)");
    return out;
  }
  const double lost = report.measured.value() - report.prediction.step_time.value();
  for (const TimePart& part :
       largest_losses(report.prediction.waterfall, report.prediction.step_time, 4)) {
    out.push_back(
        fmt::format("{}: {} of the forecast, which would have to be {:.1f} times as much "
                    "to explain the difference alone; look at {}",
                    part.label, time_text(part.time), 1 + lost / part.time.value(), try_for(part)));
  }
  out.push_back("a trace of one step tells which of them it is: --trace");
  return out;
}

}  // namespace

Written log_report_table(const LogReport& report, Form form) {
  Written out = title(headline(report.scenario), form) +
                line(model_and_layout_text(report.scenario), form) + "\n";
  out += strong_line(log_verdict(report), form) + paragraph_end(form);
  if (report.before) {
    out += strong_line("against the last run: " + run_words(*report.before), form) +
           paragraph_end(form);
  }
  out += line(fmt::format("Median of {} steps of the log", report.steps), form);
  out += heading("What it may be, and what to try", form);
  for (const std::string& one : log_findings(report)) out += bullet(one, form);
  return out;
}

Written log_report_json(const LogReport& report) {
  Json out;
  out["stepcast"] = 1;
  out["predicted"] = prediction_object(report.scenario, report.prediction);
  Json& measured = out["measured"] = Json::object();
  put(measured, "step_time_s", report.measured.value());
  measured["steps"] = report.steps;
  put(out, "error", error_of(report));
  out["covered"] = is_inside(report);
  if (report.before) out["before"] = run_object(*report.before);
  out["differences"] = Json::array();
  for (const LogDifference& one : report.differences) {
    out["differences"].push_back(
        {{"key", one.key}, {"scenario", one.in_scenario}, {"log", one.in_log}});
  }
  out["findings"] = log_findings(report);
  return json_file(out, 2);
}

}  // namespace stepcast
