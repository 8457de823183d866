// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/check_report.h"
#include "report/prediction_json.h"

namespace stepcast {
namespace {

void put(Json& object, const char* key, std::optional<double> value) {
  if (value) stepcast::put(object, key, *value);
}

Json measured_object(const CaseResult& result) {
  const Measured& measured = result.measured;
  Json out = Json::object();
  // A stated throughput comes with the step time that it stands for.
  put(out, "step_time_s",
      measured.step_time_s ? measured.step_time_s : result.measured_step_time_s);
  put(out, "tokens_per_s_per_gpu", measured.tokens_per_s_per_gpu);
  put(out, "model_tflops_per_gpu", measured.model_tflops_per_gpu);
  put(out, "mfu", measured.mfu);
  put(out, "peak_memory_bytes", measured.peak_memory_bytes);
  put(out, "bubble_fraction", measured.bubble_fraction);
  return out;
}

Json predicted_object(const CaseResult& result) {
  Json out = Json::object();
  if (!result.predicted) return out;
  const PredictedValues& predicted = *result.predicted;
  stepcast::put(out, "step_time_s", predicted.step_time_s);
  stepcast::put(out, "step_time_low_s", predicted.step_time_low_s);
  stepcast::put(out, "step_time_high_s", predicted.step_time_high_s);
  stepcast::put(out, "tokens_per_s_per_gpu", predicted.tokens_per_s_per_gpu);
  stepcast::put(out, "model_tflops_per_gpu", predicted.model_tflops_per_gpu);
  put(out, "mfu", predicted.mfu);
  stepcast::put(out, "peak_memory_bytes", predicted.peak_memory_bytes);
  stepcast::put(out, "bubble_fraction", predicted.bubble_fraction);
  return out;
}

Json case_object(const CaseResult& result) {
  Json out;
  out["id"] = result.id;
  out["suite"] = result.suite;
  out["tags"] = result.tags;
  out["nothing_assumed"] = result.nothing_assumed;
  out["predicted"] = predicted_object(result);
  out["measured"] = measured_object(result);
  Json& error = out["error"] = Json::object();
  put(error, "step_time", result.step_time_error);
  put(error, "peak_memory", result.peak_memory_error);
  put(error, "bubble_fraction", result.bubble_difference);
  if (result.covered) out["covered"] = *result.covered;
  if (result.fitted) out["fitted"] = true;
  if (!result.failed.empty()) out["failed"] = result.failed;
  if (result.not_supported) out["not_supported"] = true;
  if (result.contradiction) out["contradiction"] = name_of(*result.contradiction);
  return out;
}

Json error_object(const ErrorStatistics& errors) {
  Json out;
  out["count"] = errors.count;
  stepcast::put(out, "mean_abs_error", errors.mean_abs);
  stepcast::put(out, "median_abs_error", errors.median_abs);
  stepcast::put(out, "p90_abs_error", errors.p90_abs);
  stepcast::put(out, "max_abs_error", errors.max_abs);
  put(out, "bias", errors.bias);
  return out;
}

Json row_object(const SummaryRow& row) {
  Json out;
  out["count"] = row.count;
  out["failed"] = row.failed;
  out["not_supported"] = row.not_supported;
  if (row.step_time.count > 0) out["step_time"] = error_object(row.step_time);
  if (row.peak_memory.count > 0) out["peak_memory"] = error_object(row.peak_memory);
  if (row.bubble_fraction.count > 0) out["bubble_fraction"] = error_object(row.bubble_fraction);
  put(out, "coverage", row.coverage);
  if (row.groups > 0) out["groups"] = row.groups;
  put(out, "kendall_tau", row.kendall_tau);
  put(out, "regret", row.regret);
  return out;
}

Json summary_object(const Summary& summary) {
  Json out;
  out["all"] = row_object(summary.all);
  out["nothing_assumed"] = row_object(summary.nothing_assumed);
  out["suites"] = Json::object();
  for (const auto& [name, row] : summary.suites) out["suites"][name] = row_object(row);
  out["tags"] = Json::object();
  for (const auto& [name, row] : summary.tags) out["tags"][name] = row_object(row);
  if (summary.fitted) out["fitted"] = row_object(*summary.fitted);
  return out;
}

Json finding_list(const std::vector<Finding>& findings) {
  Json out = Json::array();
  for (const Finding& finding : findings) {
    Json entry;
    entry["what"] = finding.title;
    entry["found"] = finding.message;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Written check_json(const CheckReport& report, const GateOutcome& gate) {
  Json out;
  out["stepcast"] = 1;
  out["passed"] = gate.broken.empty();
  out["summary"] = summary_object(report.summary);
  if (!gate.broken.empty()) out["broken"] = finding_list(gate.broken);
  if (!gate.changes.empty()) out["changes"] = finding_list(gate.changes);
  out["cases"] = Json::array();
  for (const CaseResult& result : report.cases) out["cases"].push_back(case_object(result));
  return json_file(out, 1);
}

}  // namespace stepcast
