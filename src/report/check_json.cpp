// SPDX-License-Identifier: Apache-2.0

#include "core/text/escape.h"
#include "core/write_rows.h"
#include "report/check_report.h"
#include "report/run_words.h"

namespace stepcast {
namespace {

Json case_object(const CaseResult& result) {
  Json out;
  out["id"] = result.id;
  out["suite"] = result.suite;
  out["tags"] = result.tags;
  out["nothing_assumed"] = result.nothing_assumed;
  out["predicted"] = result.predicted ? json_of(*result.predicted) : Json::object();
  out["measured"] = json_of(result.measured);
  out["error"] = json_of(result.errors);
  out["publisher"] = result.publisher;
  if (result.collective) out["collective"] = json_of(*result.collective);
  if (result.covered) out["covered"] = *result.covered;
  if (result.fitted) out["fitted"] = true;
  if (!result.failed.empty()) out["failed"] = result.failed;
  if (result.not_supported) out["not_supported"] = true;
  if (result.contradiction) out["contradiction"] = name_of(*result.contradiction);
  return out;
}

Json summary_object(const Summary& summary) {
  Json out;
  out["all"] = json_of(summary.all);
  out["nothing_assumed"] = json_of(summary.nothing_assumed);
  out["suites"] = Json::object();
  for (const auto& [name, row] : summary.suites) out["suites"][name] = json_of(row);
  out["tags"] = Json::object();
  for (const auto& [name, row] : summary.tags) out["tags"][name] = json_of(row);
  if (summary.fitted) out["fitted"] = json_of(*summary.fitted);
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
  for (const RunVerdict& run : gate.runs) out["runs"].push_back(run_object(run));
  out["cases"] = Json::array();
  for (const CaseResult& result : report.cases) out["cases"].push_back(case_object(result));
  return json_file(out, 1);
}

}  // namespace stepcast
