// SPDX-License-Identifier: Apache-2.0
// The outcome of `plan` in every format (docs/plan.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/written.h"
#include "plan/balanced_stages.h"
#include "plan/bounded_layout.h"
#include "plan/offers/layout_ranking.h"
#include "plan/search_result.h"
#include "report/recorded_runs.h"

namespace stepcast {

struct LayoutChoice;
struct RuleCount;

// One `--why-not`: what the user asked about, and the best that it allows.
struct WhyNot {
  std::string asked;                 // "tp=4,pp=8"
  std::vector<std::string> changed;  // keys that the scenario states otherwise than these layouts
  Errors rules;                      // no layout of it is legal
  // Choices of another space than the report's: what is said of them comes with them.
  std::optional<BoundedLayout> large;  // legal, and none fits: the one that needs least
  bool cut_off = false;                // the search ended before it knew whether one fits
  std::optional<FoundLayout> best;     // the best of it
  std::string layout;                  // of `large` or `best`, in words
  std::string reason;                  // why `best` is no faster than the first place
  bool proven = false;                 // it is the best of it
};

// The layout that the scenario states, which the search is to better.
struct TodaysLayout {
  Prediction prediction;
  std::string layout;  // in words
};

struct PlanReport {
  const Planner& planner;
  const SearchResult& result;
  std::vector<WhyNot> why_not;
  std::size_t top = 10;  // rows
  Objective objective = Objective::kStepTime;
  std::optional<TodaysLayout> today = {};  // of --open
  const PriceList* prices = nullptr;       // given: also what the run takes and costs
  RecordedRuns recorded = {};              // like the first place
  std::optional<BalancedStages> balanced = {};  // the first place, dealt otherwise
  std::string export_note = {};    // why the first place has no launch files, if it has none
  std::string export_target = {};  // of `export --to`, which launches it
};

Written plan_table(const PlanReport& report);
Written plan_markdown(const PlanReport& report);
Written plan_csv(const PlanReport& report);
Written plan_json(const PlanReport& report);
// A page (docs/reports.md). `first`: the first place replayed with slices, samples and link use;
// null when nothing was found.
Written plan_html(const PlanReport& report, const Prediction* first);

// All formats say this about a found layout: why it is no faster than the best one. For the best
// one it says what bounds it.
std::string reason(const PlanReport& report, const FoundLayout& found);
// Says what bounds it: its largest losses, and whether memory forbids what might be faster.
std::string binding_text(const Planner& planner, const FoundLayout& found,
                         const SearchResult& result);
// Why a layout of one planner is no faster than the first place of another.
std::string reason_against(const Planner& planner, const FoundLayout& found,
                           const Prediction& first);
// "tp 8 · pp 4 · ...", with what the search varied and headlines leave out.
std::string choice_text(const Planner& planner, const LayoutChoice& choice);
std::string choice_text(const Scenario& scenario);
// How much faster stages that compute equally long make the first place; "" where they do not.
std::string balanced_text(const PlanReport& report);
// How certain the first place is.
std::string verdict_text(const PlanReport& report);
// Says what the verdict is about: the keys that were searched, and how near ties stand.
std::vector<std::string> scope_lines(const PlanReport& report);
// The answer to a --why-not that no rule refuses.
std::string answer_text(const PlanReport& report, const WhyNot& why);
// The place of today's layout among the rows: 1 where none is faster, empty where all are.
std::optional<std::size_t> place_of_today(const PlanReport& report);
// "today's layout takes 3.42 s: place 4, 9.0 % behind the first".
std::string today_text(const PlanReport& report);
// Lists the rules by the branches that they cut, most first.
std::vector<std::pair<std::string, RuleCount>> rules_by_branches(const SearchResult& result);

// A row of the table: a layout, and the layouts with the same forecast that share its row.
struct PlanRow {
  const FoundLayout* found;
  std::size_t equals = 0;
};
std::vector<PlanRow> plan_rows(const PlanReport& report);
// Each row's layout in words; rows of equal words also say the keys in which they differ.
std::vector<std::string> row_layouts(const PlanReport& report, const std::vector<PlanRow>& rows);
// Finds those like the first place, by the errors in this folder of profiles; none without a place.
Result<RecordedRuns> recorded_runs_of_first(const Planner& planner, const SearchResult& result,
                                            const std::string& profiles_folder);
// Why the first place stands before faster rows; empty where none is faster.
std::string tie_text(const PlanReport& report);

}  // namespace stepcast
