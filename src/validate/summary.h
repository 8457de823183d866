// SPDX-License-Identifier: Apache-2.0
// Error statistics over cases. A case that could not be predicted counts as an absolute error of
// 1.0 and not in the bias; one that is not supported yet is counted apart and in no error. Cases
// that a profile was fitted on stand apart in `fitted`.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/align.h"

namespace stepcast {

struct Rows;  // core/rows.h

struct ErrorStatistics {
  std::size_t count = 0;  // cases with this figure measured, failed ones included
  double mean_abs = 0;
  double median_abs = 0;
  double p90_abs = 0;
  double max_abs = 0;
  std::optional<double> bias;  // mean signed error of the cases that were predicted

  static Rows fields();
};

struct SummaryRow {
  std::size_t count = 0;
  std::size_t failed = 0;
  std::size_t not_supported = 0;  // apart from those that failed
  ErrorStatistics step_time;
  ErrorStatistics peak_memory;
  ErrorStatistics bubble_fraction;  // absolute differences
  ErrorStatistics collective_time;
  // Share of the collectives whose source names an algorithm that were given this one.
  std::optional<double> algorithms;
  std::optional<double> coverage;  // share of measured step times inside the interval
  // Over groups of equal model, cluster and training with two cases or more:
  std::size_t groups = 0;
  std::optional<double> kendall_tau;  // order of step times; groups weigh by their pairs
  std::optional<double> regret;       // mean of T(predicted best)/T(measured best) - 1, measured

  static Rows fields();
};

struct Summary {
  SummaryRow all;
  SummaryRow nothing_assumed;
  std::map<std::string, SummaryRow> suites;
  std::map<std::string, SummaryRow> tags;
  std::optional<SummaryRow> fitted;  // in none of the rows above
};

SummaryRow summarise(const std::vector<const CaseResult*>& cases);
Summary summarise(const std::vector<CaseResult>& cases);

// A figure of a row by name ("step_time.mean_abs_error", "kendall_tau"): nothing when the row
// has none.
std::optional<double> metric_of(const SummaryRow& row, std::string_view name);
const std::vector<std::string>& metric_names();
bool larger_is_better(std::string_view name);

// "all", "nothing_assumed", "fitted", a suite or a tag.
const SummaryRow* row_of(const Summary& summary, std::string_view name);
std::vector<std::string> row_names(const Summary& summary);

}  // namespace stepcast
