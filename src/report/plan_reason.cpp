// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/json_tree.h"
#include "layout/keys.h"
#include "layout/scenario.h"
#include "plan/layout_dimension.h"
#include "plan/planner.h"
#include "plan/ranking.h"
#include "plan/space.h"
#include "report/breakdown.h"
#include "report/difference.h"
#include "report/key_difference.h"
#include "report/number_text.h"
#include "report/plan_report.h"
#include "report/search_gap.h"

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

namespace {

// How far the leanest layout is from fitting, and what to try next.
std::string nothing_fits_text(const Planner& planner, const SearchResult& result) {
  std::string out = fmt::format("No layout fits in {} GiB.", gib_text(result.memory_limit));
  if (result.smallest) {
    out += fmt::format(
        " The least that one needs is {}{} GiB: {}.", result.smallest_forecast ? "" : "above ",
        gib_text(result.smallest->device_bytes), choice_text(planner, result.smallest->choice));
  }
  return out + " More GPUs hold more; --advise says what fills the memory of each way to train.";
}

}  // namespace

std::string verdict_text(const PlanReport& report) {
  const SearchResult& result = report.result;
  if (result.found.empty()) {
    if (result.proven) return nothing_fits_text(report.planner, result);
    return "No layout that fits was found; the search ended before it had looked at all.";
  }
  if (result.proven) {
    const char* better = report.objective == Objective::kStepTime ? "faster"
                         : report.objective == Objective::kCost   ? "cheaper"
                                                                  : "done sooner";
    return fmt::format(
        "No layout of the space is {} by more than {}: certain, as the engine sees it.", better,
        percent_text(kNearTie, 0));
  }
  if (result.bound_s <= 0) {
    return fmt::format(
        "The best of {} replayed layouts; the search ended before it had bounded all the others.",
        result.replayed);
  }
  const Prediction& best = result.found.front().prediction;
  return fmt::format(
      "{} of {} replayed layouts; none that was not replayed is faster than {} ({}): it is {}. "
      "--prove makes it certain.",
      tie_text(report).empty() ? "The best" : "The first", result.replayed,
      time_text(Seconds(result.bound_s)),
      signed_percent_text(Seconds(result.bound_s) / best.step_time - 1, 2), gap_text(result, best));
}

namespace {

// A search leaves these keys as they are although they may decide.
std::vector<std::string> not_varied(const Scenario& base) {
  std::vector<std::string> out = {"precision", "offload", "stage_layers"};
  if (base.model.moe) out.insert(out.end(), {"overlap.ep", "moe.dispatcher"});
  return out;
}

}  // namespace

std::vector<std::string> scope_lines(const PlanReport& report) {
  std::vector<std::string> keys;
  for (const LayoutDimension* dimension : report.planner.space().dimensions()) {
    std::string key = dimension->path;
    key.erase(0, std::string_view("layout.").size());
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return {"Every key is stated: nothing was searched."};
  return {fmt::format("Searched: {}.", fmt::join(keys, ", ")),
          fmt::format("Not varied: {}; --vary searches each value of one.",
                      fmt::join(not_varied(report.planner.space().base()), ", ")),
          fmt::format("Near ties ({}) stand by simplicity: fewer axes, then fewer keys that differ "
                      "from their defaults.",
                      percent_text(kNearTie, 0))};
}

std::string answer_text(const PlanReport& report, const WhyNot& why) {
  if (why.large) {
    return fmt::format("nothing fits; the least is {} of {} GiB: {}",
                       gib_text(why.large->device_bytes), gib_text(report.result.memory_limit),
                       why.layout);
  }
  if (why.cut_off) return "the search ended before it had found one that fits";
  if (!why.best) return "nothing was replayed";
  const Seconds step = why.best->prediction.step_time;
  if (report.result.found.empty()) return fmt::format("{}: {}", time_text(step), why.layout);
  const FoundLayout& first = report.result.found.front();
  if (why.layout == choice_text(report.planner, first.choice)) {
    return fmt::format("these include the first place: {}: {}", time_text(step), why.layout);
  }
  const double best = first.prediction.step_time.value();
  return fmt::format("{}{} ({} against the first): {}", why.proven ? "" : "at best found ",
                     time_text(step), signed_percent_text(step.value() / best - 1, 2), why.layout);
}

std::vector<std::pair<std::string, RuleCount>> rules_by_branches(const SearchResult& result) {
  std::vector<std::pair<std::string, RuleCount>> rules(result.space.rules.begin(),
                                                       result.space.rules.end());
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return a.second.subtrees > b.second.subtrees;
  });
  return rules;
}

std::string choice_text(const Planner& planner, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  return choice_text(scenario);
}

std::string choice_text(const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  std::string out = layout_text(scenario);
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

std::optional<std::size_t> place_of_today(const PlanReport& report) {
  const std::vector<PlanRow> rows = plan_rows(report);
  const auto is_faster = [&](const PlanRow& row) {
    return row.found->prediction.step_time < report.today->prediction.step_time;
  };
  const auto faster = static_cast<std::size_t>(std::ranges::count_if(rows, is_faster));
  if (faster == rows.size()) return std::nullopt;
  return faster + 1;
}

std::string balanced_text(const PlanReport& report) {
  if (!report.balanced) return "";
  const Prediction& first = report.result.found.front().prediction;
  return fmt::format(
      "layers dealt {} over the chunks, so that the stage with the head computes as long as the "
      "others, make the first place {} faster ({}): --set layout.stage_layers=balanced",
      fmt::join(report.balanced->layers, ", "),
      percent_text(1 - report.balanced->step_time / first.step_time, 1),
      time_text(report.balanced->step_time));
}

std::string today_text(const PlanReport& report) {
  const Prediction& today = report.today->prediction;
  std::string out = fmt::format("today's layout takes {}", time_text(today.step_time));
  if (!today.fits)
    out += fmt::format(" and needs {} GiB, which does not fit", gib_text(today.peak_device));
  const std::vector<PlanRow> rows = plan_rows(report);
  if (rows.empty()) return out;
  const auto place = place_of_today(report);
  const double behind = today.step_time / rows.front().found->prediction.step_time - 1;
  if (!place) {
    out += fmt::format(": behind {}", rows.size() == 1 ? "the one place"
                                                       : fmt::format("all {} places", rows.size()));
  } else {
    out += fmt::format(": place {}", *place);
  }
  if (behind > 0) out += fmt::format(", {} behind the first", percent_text(behind));
  return out + " (" + report.today->layout + ")";
}

std::vector<std::string> row_layouts(const PlanReport& report, const std::vector<PlanRow>& rows) {
  std::vector<std::string> out;
  std::map<std::string, std::vector<std::size_t>> alike;
  for (const PlanRow& row : rows) {
    out.push_back(choice_text(report.planner, row.found->choice));
    alike[out.back()].push_back(out.size() - 1);
  }
  Scenario scenario = report.planner.space().base();
  for (const auto& [words, members] : alike) {
    if (members.size() < 2) continue;
    std::vector<SortedJson> layouts;
    for (const std::size_t i : members) {
      report.planner.space().put(rows[i].found->choice, scenario);
      layouts.push_back(write_keys(scenario, layout_keys()));
    }
    std::vector<ComparedDocument> documents;
    for (const SortedJson& layout : layouts) documents.push_back({layout, true});
    for (const KeyDifference& one : key_differences(documents)) {
      for (std::size_t m = 0; m < members.size(); ++m) {
        out[members[m]] += fmt::format(" · {} {}", one.key, one.values[m]);
      }
    }
  }
  return out;
}

std::string tie_text(const PlanReport& report) {
  const std::vector<PlanRow> rows = plan_rows(report);
  if (rows.empty() || report.objective != Objective::kStepTime) return "";
  const FoundLayout& first = *rows.front().found;
  const auto step = [](const PlanRow& row) { return row.found->prediction.step_time; };
  const auto fastest = std::ranges::min_element(rows, {}, step);
  const double gain = 1 - step(*fastest) / first.prediction.step_time;
  if (!(gain > 0)) return "";
  Scenario scratch = report.planner.space().base();
  const auto simple = [&](const FoundLayout& found) {
    return simplicity(report.planner.space(), found.choice, found.prediction.peak_device, scratch);
  };
  const Simplicity of_first = simple(first), of_fastest = simple(*fastest->found);
  const bool axes = of_first.axes != of_fastest.axes;
  return fmt::format(
      "Place 1 stands before place {}, which is {} faster: within a near tie ({}) the simpler "
      "layout "
      "goes first, and it has fewer {} ({}, not {}).",
      fastest - rows.begin() + 1, percent_text(gain, 2), percent_text(kNearTie, 0),
      axes ? "axes of parallelism" : "keys that differ from their defaults",
      axes ? of_first.axes : of_first.flags, axes ? of_fastest.axes : of_fastest.flags);
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

Result<RecordedRuns> recorded_runs_of_first(const Planner& planner, const SearchResult& result,
                                            const std::string& profiles_folder) {
  if (result.found.empty()) return RecordedRuns{};
  const auto measured = MeasuredErrors::read(profiles_folder);
  if (!measured) return failure(measured.error());
  Scenario first = planner.space().base();
  planner.space().put(result.found.front().choice, first);
  return recorded_runs(first, *measured);
}

}  // namespace stepcast
