// SPDX-License-Identifier: Apache-2.0
// Writes what continuous integration reads: JUnit XML and GitHub's workflow commands.
#include <fmt/format.h>

#include <map>
#include <vector>

#include "core/text/escape.h"
#include "report/check_report.h"
#include "report/junit.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

std::string comparison_text(const CaseResult& result) {
  std::string out;
  if (result.errors.step_time) {
    out += fmt::format("step time {} predicted, {} measured, {}",
                       time_text(Seconds(*result.predicted->step_time_s)),
                       time_text(Seconds(*result.measured.step_time_s)),
                       signed_percent_text(*result.errors.step_time));
  }
  if (result.errors.peak_memory) {
    out += fmt::format("{}peak memory {}", out.empty() ? "" : "; ",
                       signed_percent_text(*result.errors.peak_memory));
  }
  if (result.errors.bubble_fraction) {
    out += fmt::format("{}bubble {:+.3f}", out.empty() ? "" : "; ", *result.errors.bubble_fraction);
  }
  if (result.errors.collective_time) {
    out += fmt::format("{} predicted, {} measured, {}",
                       time_text(Seconds(*result.predicted->collective_time_s)),
                       time_text(Seconds(*result.measured.collective_time_s)),
                       signed_percent_text(*result.errors.collective_time));
  }
  return out;
}

JunitCase junit_case(const CaseResult& result) {
  JunitCase out{result.suite, result.id, JunitOutcome::kPassed, result.failed};
  if (result.failed.empty()) {
    out.text = comparison_text(result);
  } else {
    out.outcome = result.not_supported ? JunitOutcome::kSkipped : JunitOutcome::kError;
  }
  return out;
}

std::map<std::string, std::vector<const CaseResult*>> by_suite(const CheckReport& report) {
  std::map<std::string, std::vector<const CaseResult*>> out;
  for (const CaseResult& result : report.cases) out[result.suite].push_back(&result);
  return out;
}

// GitHub shows ten annotations of a kind in a step: changes share one.
Written changes_notice(const GateOutcome& gate) {
  if (gate.changes.empty()) return {};
  std::string text;
  for (const Finding& change : gate.changes) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", change.title, change.message);
  }
  return github_command(
      "notice", fmt::format("{} changed against {}", gate.changes.size(), gate.baseline), text);
}

}  // namespace

Written check_junit(const CheckReport& report, const GateOutcome& gate) {
  std::vector<JunitSuite> suites;
  for (const auto& [name, cases] : by_suite(report)) {
    JunitSuite& suite = suites.emplace_back(JunitSuite{name, {}});
    for (const CaseResult* result : cases) suite.cases.push_back(junit_case(*result));
  }
  suites.push_back(junit_gate(gate.broken));
  return junit_xml("stepcast check", suites);
}

Written check_github(const CheckReport& report, const GateOutcome& gate) {
  Written out;
  for (const Finding& finding : gate.broken) {
    out += github_command("error", finding.title, finding.message);
  }
  for (const auto& [name, cases] : by_suite(report)) {
    std::size_t failed = 0;
    const CaseResult* first = nullptr;
    for (const CaseResult* result : cases) {
      if (result->failed.empty()) continue;
      ++failed;
      if (!first) first = result;
    }
    if (!first) continue;
    out += github_command("warning", name,
                          fmt::format("{} of {} cases not predicted; {}: {}", failed, cases.size(),
                                      first->id, first->failed));
  }
  out += changes_notice(gate);
  std::string errors = counted_text(static_cast<std::int64_t>(report.summary.all.count), "case");
  const auto add = [&](const char* what, const ErrorStatistics& time) {
    errors += fmt::format(", {} mean error {}, max {}", what, percent_text(time.mean_abs),
                          percent_text(time.max_abs));
  };
  const SummaryRow& all = report.summary.all;
  if (all.step_time.count > 0 || all.collective_time.count == 0) add("step time", all.step_time);
  if (all.collective_time.count > 0) add("collective", all.collective_time);
  out += github_command("notice", "stepcast check", errors);
  return out;
}

}  // namespace stepcast
