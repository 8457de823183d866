// SPDX-License-Identifier: Apache-2.0
// A found layout as JSON and CSV: what places of one cluster and of several have in common.
#pragma once

#include <string>
#include <vector>

#include "core/json_fwd.h"
#include "economics/run_forecast.h"
#include "report/text_table.h"

namespace stepcast {

class Planner;
struct FoundLayout;
struct LayoutChoice;
struct Prediction;

void put_layout(Json& out, const Planner& planner, const LayoutChoice& choice);

// The scenario as it is stated, with one of the planner's layouts.
SortedJson with_layout(SortedJson stated, const Planner& planner, const LayoutChoice& choice);

// `framework`, `layout`, `cluster`, `prediction`, `economics` with a run, `bound_s`.
Json plan_entry(const Planner& planner, const FoundLayout& found, const RunOutlook* run);

// A point of the front of time, memory, GPUs and, with a run, money.
Json pareto_entry(const Planner& planner, const FoundLayout& found, const RunOutlook* run);

// "framework", one for each dimension of the search, "dp".
std::vector<Column> layout_csv_columns();
std::vector<std::string> layout_csv_cells(const Planner& planner, const LayoutChoice& choice);

// Whether recorded runs have exercised all that the forecast relies on, and what none has.
std::string proof_text(const Prediction& prediction);

}  // namespace stepcast
