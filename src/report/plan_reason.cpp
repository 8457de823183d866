// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/breakdown.h"
#include "report/difference.h"
#include "report/number_text.h"
#include "report/plan_report.h"

namespace stepcast {

std::string reason_against(const Planner& planner, const FoundLayout& found,
                           const Prediction& first) {
  Scenario scenario = planner.space().base();
  planner.space().put(found.choice, scenario);
  return difference_text(scenario, found.prediction, first);
}

std::string reason(const PlanReport& report, const FoundLayout& found) {
  const FoundLayout& best = report.result.found.front();
  if (found.choice != best.choice) return reason_against(report.planner, found, best.prediction);
  return binding_text(report.planner, found, report.result);
}

std::string binding_text(const Planner& planner, const FoundLayout& found,
                         const SearchResult& result) {
  Scenario scenario = planner.space().base();
  planner.space().put(found.choice, scenario);
  const auto losses = largest_losses(found.prediction.waterfall, found.prediction.step_time, 3);
  std::string out;
  for (const TimePart& loss : losses) {
    out += fmt::format("{}{} {}", out.empty() ? "bound by " : ", ", part_text(scenario, loss),
                       percent_text(loss.time / found.prediction.step_time, 1));
  }
  const bool memory_binds = !result.too_large.empty() &&
                            result.too_large.front().bound_s < found.prediction.step_time.value();
  if (memory_binds) out += "; memory forbids what might be faster";
  return out.empty() ? "arithmetic" : out;
}

std::string choice_text(const Planner& planner, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  const Layout& layout = scenario.layout;
  std::string out = layout_text(scenario);
  if (layout.recompute.layers > 0) {
    out += fmt::format(" of {} layers per chunk", layout.recompute.layers);
  }
  std::string overlaps;
  for (const auto& [name, on] :
       {std::pair("grad", layout.overlap.grad_reduce),
        std::pair("param", layout.overlap.param_gather), std::pair("tp", layout.overlap.tp),
        std::pair("pp", layout.overlap.pp)}) {
    if (on) overlaps += fmt::format("{}{}", overlaps.empty() ? "" : "+", name);
  }
  if (!overlaps.empty()) out += fmt::format(" · overlap {}", overlaps);
  if (layout.order != Layout{}.order) out += fmt::format(" · order {}", layout.order);
  return out;
}

std::vector<PlanRow> plan_rows(const PlanReport& report) {
  std::vector<PlanRow> rows;
  for (const FoundLayout& found : report.result.found) {
    if (!rows.empty()) {
      if (share_place(rows.back().found->prediction, found.prediction)) {
        ++rows.back().equals;
        continue;
      }
    }
    if (rows.size() == report.top) break;
    rows.push_back({&found, 0});
  }
  return rows;
}

}  // namespace stepcast
