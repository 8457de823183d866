// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/rung_search.h"

#include <algorithm>
#include <utility>

#include "cluster/named_cluster.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "layout/choices.h"
#include "layout/data_folders.h"
#include "layout/scenario.h"
#include "plan/layout_dimension.h"
#include "plan/planner.h"
#include "plan/space.h"

namespace stepcast {
namespace {

SortedJson scenario_of(const AdviceInput& input, const Rung& rung, std::int64_t gpus,
                       TrainingMode mode) {
  SortedJson out = input.scenario;
  if (gpus != input.base.cluster.gpus()) {
    set_gpus(out["cluster"], gpus, input.folders.topologies);
  }
  SortedJson& training = out["training"];
  if (mode != input.base.training.mode) training["mode"] = name_of(mode);
  if (rung.framework && !training.contains("framework")) {
    training["framework"] = name_of(*rung.framework);
  }
  return out;
}

// The rule that refuses most layouts.
Errors main_objection(const SpaceCount& space) {
  const auto most = std::ranges::max_element(
      space.rules, {}, [](const auto& entry) { return entry.second.subtrees; });
  if (most == space.rules.end()) {
    return {{ErrorCode::kIllegal, "the stated keys leave no layout", "", "layout", ""}};
  }
  return {most->second.example};
}

Errors take(SearchResult found, const AdviceInput& input, RungResult& out) {
  out.memory_limit = found.memory_limit;
  out.proven = found.proven;
  out.interrupted = found.interrupted;
  if (!found.found.empty()) {
    FoundLayout& best = found.found.front();
    out.fits = true;
    out.layout = {best.choice, std::move(best.prediction)};
    const Prediction& p = out.layout->prediction;
    const StepTime step{p.step_time, p.step_time_low, p.step_time_high};
    out.run = run_outlook(out.scenario(), input.prices, step);
    out.shortfalls = shortfalls_of(input.demands, p, out.run->forecast);
  } else if (found.interrupted) {
    out.verdict = RungVerdict::kUnknown;
    return {};
  } else if (found.smallest) {
    out.shortfalls = {{Constraint::kMemory, static_cast<double>(found.smallest->device_bytes),
                       static_cast<double>(found.memory_limit)}};
    if (found.smallest_forecast) {
      out.layout = {found.smallest->choice, std::move(*found.smallest_forecast)};
    }
  } else {
    out.objections = main_objection(found.space);
    return {};
  }
  out.verdict = out.meets() ? RungVerdict::kAbove : RungVerdict::kFails;
  return {};
}

}  // namespace

const char* name_of(RungVerdict verdict) {
  switch (verdict) {
    case RungVerdict::kAdvised:
      return "advised";
    case RungVerdict::kAbove:
      return "above";
    case RungVerdict::kSpare:
      return "spare";
    case RungVerdict::kBehind:
      return "behind";
    case RungVerdict::kFails:
      return "fails";
    case RungVerdict::kRefused:
      return "refused";
    case RungVerdict::kUnknown:
      return "unknown";
  }
  return "";
}

Scenario RungResult::scenario() const {
  Scenario out = planner->space().base();
  planner->space().put(layout->choice, out);
  return out;
}

Result<RungResult> search_rung(const AdviceInput& input, const Rung& rung, std::int64_t gpus,
                               std::optional<TrainingMode> mode) {
  RungResult out;
  out.rung = &rung;
  out.gpus = gpus;
  out.mode = mode.value_or(rung.mode.value_or(input.base.training.mode));
  ClusterSpec cluster = input.base.cluster.spec;
  cluster.gpus = gpus;
  const auto document = JsonDocument::from(scenario_of(input, rung, gpus, out.mode), input.file);
  auto planner = Planner::make(*document, input.folders, rung.part(cluster));
  if (!planner) {
    if (Errors refused = refused_by_machine(planner.error()); !refused.empty()) {
      return failure(std::move(refused));
    }
    out.objections = planner.error();
    return out;
  }
  out.planner = std::move(*planner);
  SearchOptions options = input.search;
  options.top = 1;
  options.front = 0;
  options.memory_margin = input.demands.memory_margin;
  auto found = out.planner->search(options);
  if (!found) return failure(found.error());
  if (Errors errors = take(std::move(*found), input, out); !errors.empty()) {
    return failure(std::move(errors));
  }
  return out;
}

}  // namespace stepcast
