// SPDX-License-Identifier: Apache-2.0
// Answers why layouts that somebody asks about are not the first place of a search.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/planner.h"
#include "report/plan_report.h"

namespace stepcast {

struct SearchOptions;

// One question: the planner of the layouts that it asks about, or the rules against all of them.
struct WhyNotQuestion {
  std::string asked;  // "tp=4,pp=8"
  Result<std::unique_ptr<Planner>> planner;
};

// That no rule allows a layout is an answer. A key or value that does not exist is a mistake of the
// user, which these errors name; `flag` is where the questions were asked.
Errors slips_of(const std::vector<WhyNotQuestion>& questions, const std::string& flag);

// Searches the best of the layouts that the question asks about, and sets it beside `all`.
WhyNot why_not(const WhyNotQuestion& question, const SearchOptions& options,
               const SearchResult& all);

}  // namespace stepcast
