// SPDX-License-Identifier: Apache-2.0
// A training log's step time beside its forecast, and where a difference may come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/text/written.h"
#include "report/document_form.h"
#include "validate/run_verdicts.h"

namespace stepcast {

struct Prediction;
struct Scenario;

// A key that the log states otherwise than the scenario.
struct LogDifference {
  std::string key;
  std::int64_t in_scenario = 0, in_log = 0;
};

struct LogReport {
  const Scenario& scenario;
  const Prediction& prediction;
  Seconds measured;
  std::int64_t steps = 0;
  std::vector<LogDifference> differences = {};
  std::optional<RunVerdict> before = {};  // against the last run
};

Written log_report_table(const LogReport& report, Form form);
Written log_report_json(const LogReport& report);

}  // namespace stepcast
