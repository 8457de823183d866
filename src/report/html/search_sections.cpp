// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/plan_sections.h"
#include "report/number_text.h"

namespace stepcast::html {
namespace {

struct Stage {
  std::string title;
  double count;
  std::string behind;  // says what became of the others of the stage before
};

std::vector<Stage> stages_of(const PlanReport& report) {
  const SearchResult& r = report.result;
  std::vector<Stage> out;
  out.push_back({"combinations of the open keys", r.combinations, ""});
  out.push_back({"allowed and different", r.differing(), "refused by a rule, or equal to another"});
  out.push_back(
      {"may fit", r.differing() - r.cut_by_memory,
       fmt::format("need more than {} GiB by the bound on memory", gib_text(r.memory_limit))});
  std::string aside = "left aside when the search ended";
  if (r.proven) {
    aside = "no faster than the last place by the bound on time";
  } else if (r.bound_s > 0) {
    aside += ": none is faster than " + time_text(Seconds(r.bound_s));
  }
  out.push_back({"replayed by the engine", static_cast<double>(r.replayed), aside});
  out.push_back({"fit", static_cast<double>(r.found.size()),
                 fmt::format("need more than {} GiB by replay", gib_text(r.memory_limit))});
  return out;
}

}  // namespace

Section funnel_section(const PlanReport& report) {
  DataTable table("funnel", "From combinations to layouts that fit",
                  {{"layouts"}, {"", false, false}, {"count", true}, {"left out", true}, {"why"}});
  const std::vector<Stage> stages = stages_of(report);
  // Each stage is a small part of the one before it, so bar lengths are logarithms.
  const auto length = [&](double count) {
    return std::log1p(std::max(count, 0.0)) / std::log1p(std::max(stages.front().count, 1.0));
  };
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const double left = i == 0 ? 0 : stages[i - 1].count - stage.count;
    const BarLine bar{{{0, length(stage.count), "mark-1", ""}}, {}, count_text(stage.count)};
    table.add_row({stage.title,
                   DataCell(bar_line(bar)),
                   {count_text(stage.count), stage.count},
                   left > 0 ? DataCell(count_text(left), left) : DataCell(""),
                   left > 0 ? stage.behind : ""});
  }
  return {"search", "The search", table.html() + note("Lengths are logarithmic.")};
}

Section rejected_section(const PlanReport& report) {
  const SearchResult& r = report.result;
  Html body;
  if (!r.too_large.empty()) {
    DataTable table(
        "too-large", "What may be faster, and misses the limit of memory by little",
        {{"layout", false, true, true}, {"GiB", true}, {"limit", true}, {"step, at best", true}});
    Scenario scenario = report.planner.space().base();
    for (const BoundedLayout& large : r.too_large) {
      report.planner.space().put(large.choice, scenario);
      table.add_row({choice_text(scenario),
                     {gib_text(large.device_bytes), static_cast<double>(large.device_bytes)},
                     {gib_text(r.memory_limit), static_cast<double>(r.memory_limit)},
                     {time_text(Seconds(large.bound_s)), large.bound_s}});
    }
    body += element("h3", {}, "By memory") + table.html();
  }
  DataTable table("rules", "Rules that refuse branches of the space, with one example each",
                  {{"key"}, {"branches", true}, {"as", false, true, true}});
  for (const auto& [key, rule] : rules_by_branches(r)) {
    const auto count = static_cast<double>(rule.subtrees);
    table.add_row({key, {count_text(count), count}, rule.example.message});
  }
  if (!table.empty()) body += element("h3", {}, "By rules") + table.html();
  if (body.empty()) body = paragraph("No rule and no limit cuts this space.");
  return {"rejected", "Rejected", body};
}

}  // namespace stepcast::html
