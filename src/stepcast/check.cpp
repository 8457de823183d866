// SPDX-License-Identifier: Apache-2.0
#include "stepcast/check.h"

#include "core/gathered_errors.h"
#include "core/work_limits.h"
#include "report/check_report.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/made_suite.h"
#include "validate/check.h"
#include "validate/tolerance.h"

namespace stepcast::api {

struct CheckOutcome::Made {
  CheckReport report;
  GateOutcome gate;
};

namespace {

Result<CheckReport> report_of(const std::vector<Suite>& suites, int threads,
                              const std::function<bool()>& stop) {
  std::vector<stepcast::Suite> read;
  for (const Suite& suite : suites) read.push_back(suite.made().suite);
  CheckOptions options;
  options.threads = threads;
  options.stop = stop;
  const StopScope scope(stop);
  try {
    auto report = stepcast::check(read, suites.front().made().data.root().folders, options);
    end_if_stopped();
    return report;
  } catch (const Stopped&) {
    return failure(Errors{});
  }
}

}  // namespace

Result<CheckOutcome> check(const std::vector<Suite>& suites,
                           const std::vector<std::string>& tolerances, int threads,
                           const std::function<bool()>& stop) {
  const auto limits = parse_tolerances(tolerances);
  if (!limits) return failure(limits.error());
  if (suites.empty()) {
    return failure({ErrorCode::kMissingKey, "no suite is given", "", "", "Suite::load reads one"});
  }
  auto report = report_of(suites, threads, stop);
  if (!report) return failure(report.error());
  if (!report->refused.empty()) return failure(report->refused);
  auto gate = judge(*report, *limits);
  if (!gate) return failure(gate.error());
  return CheckOutcome(std::make_shared<const CheckOutcome::Made>(
      CheckOutcome::Made{std::move(*report), std::move(*gate)}));
}

bool CheckOutcome::passed() const { return made_->gate.broken.empty(); }

std::string CheckOutcome::json() const { return check_json(made_->report, made_->gate); }
std::string CheckOutcome::csv() const { return check_csv(made_->report); }
std::string CheckOutcome::text() const { return check_table(made_->report, made_->gate); }
std::string CheckOutcome::markdown() const { return check_markdown(made_->report, made_->gate); }
std::string CheckOutcome::html() const { return check_html(made_->report, made_->gate); }
std::string CheckOutcome::junit() const { return check_junit(made_->report, made_->gate); }

}  // namespace stepcast::api
