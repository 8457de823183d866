// SPDX-License-Identifier: Apache-2.0
// The forecast of a run as columns of a table that ranks plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "economics/run_forecast.h"
#include "report/text_table.h"

namespace stepcast {

// A cell of a run: what people read, and its value where there is one.
struct RunCell {
  std::string text;
  std::optional<double> value;
};

// "run", "goodput", "cost", "$/M tokens"; without the first and third where `length` is
// false: no number of tokens is given.
std::vector<Column> run_columns(bool length);
std::vector<RunCell> run_cells(const RunOutlook& run, bool length);

std::vector<Column> run_csv_columns();
std::vector<std::string> run_csv_cells(const RunOutlook& run);

// "$2.95 per GPU-hour (median of 37 providers, 2026-05-20 (aimultiple.com ...))", or that
// there is none.
std::string price_text(const RunTerms& terms);

// Why more GPUs are billed than are used; empty where they are not.
std::string billed_text(const RunTerms& terms);

// "meets the deadline of 30.0 days (chance 57 %)", "misses the budget of $500,000 (chance 3 %)":
// one per stated limit.
std::vector<std::string> limit_texts(const RunOutlook& run);

}  // namespace stepcast
