// SPDX-License-Identifier: Apache-2.0
#include "stepcast/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/assert.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/scenario_input.h"
#include "plan/offers/layout_ranking.h"
#include "plan/planner.h"
#include "plan/search.h"
#include "plan/space.h"
#include "report/plan_entry.h"
#include "report/plan_report.h"
#include "report/why_not.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/read_scenario.h"

namespace stepcast::api {

struct Plan::Made {
  Scenario stated;
  std::unique_ptr<const Planner> planner;
  SearchResult result;
  PriceList prices;
  Objective objective;
  std::size_t top;
  std::vector<WhyNot> why_not;
  RecordedRuns recorded;
  std::optional<BalancedStages> balanced;

  PlanReport report() const {
    PlanReport out{*planner, result, why_not, top};
    out.objective = objective;
    out.recorded = recorded;
    out.balanced = balanced;
    if (planner->space().base().run || objective != Objective::kStepTime) out.prices = &prices;
    return out;
  }
};

namespace {

std::string stated_with(const Scenario& scenario, const Planner& planner,
                        const LayoutChoice& choice) {
  return json_text(with_layout(SortedJson::parse(scenario.json()), planner, choice));
}

SearchOptions options_of(const PlanOptions& options, const Scenario& scenario,
                         const Planner& planner) {
  const PlanInput limits = planner.limits();
  SearchOptions out;
  out.top = options.top;
  out.replays = options.replays;
  out.front = options.front;
  out.prove = options.prove;
  out.time_limit_s = options.time_limit.value();
  out.memory_margin = options.memory_margin >= 0 ? options.memory_margin
                                                 : limits.memory_margin.value_or(kMemoryMargin);
  out.risk = options.risk > 0 ? options.risk : limits.risk.value_or(out.risk);
  out.threads = std::max(1, options.threads);
  out.stop = options.stop;
  if (options.progress) {
    out.progress = [&](const SearchProgress& state) {
      options.progress({Seconds(state.elapsed_s), state.bounded, state.replayed,
                        Seconds(state.best_s), Seconds(state.bound_s),
                        state.best ? stated_with(scenario, planner, *state.best) : ""});
    };
  }
  share_time_limit(out);
  return out;
}

// An option that the search could not keep to.
Errors out_of_range(const PlanOptions& options) {
  struct Limit {
    const char* option;
    double value, least, most;
  };
  const double risk = options.risk == 0 ? kLeastRisk : options.risk;
  const Limit limits[] = {{"top", static_cast<double>(options.top), 1, 1000},
                          {"replays", static_cast<double>(options.replays), 1, 1e12},
                          {"front", static_cast<double>(options.front), 0, 100},
                          {"time_limit", options.time_limit.value(), 0, 1e9},
                          {"memory_margin", std::max(0.0, options.memory_margin), 0, 1},
                          {"risk", risk, kLeastRisk, kMostRisk}};
  Errors out;
  for (const Limit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    out.push_back({ErrorCode::kBadValue, fmt::format("{} is out of range", limit.value), "",
                   limit.option, fmt::format("{} to {}", limit.least, limit.most)});
  }
  return out;
}

// "tp=4,pp=8", and the planner of these layouts.
Result<std::vector<WhyNotQuestion>> questions_of(const PlanOptions& options,
                                                 const Scenario& scenario) {
  std::vector<WhyNotQuestion> out;
  for (const auto& keys : options.why_not) {
    Scenario asked = scenario;
    std::vector<std::string> words;
    for (const auto& [key, value] : keys) {
      auto with = asked.with("layout." + key, value);
      if (!with) return failure(with.error());
      asked = std::move(*with);
      words.push_back(key + "=" + value);
    }
    out.push_back({fmt::format("{}", fmt::join(words, ",")),
                   Planner::make(*document_of(asked), scenario.data().root().folders)});
  }
  Errors slips = slips_of(out, "why_not");
  if (!slips.empty()) return failure(std::move(slips));
  return out;
}

Result<Objective> read_objective(const std::string& asked, const PlanInput& limits) {
  const std::string name =
      asked.empty() ? limits.objective.value_or(name_of(Objective::kStepTime)) : asked;
  const auto& names = objective_names();
  if (std::ranges::find(names, name) == names.end()) {
    return failure(
        {ErrorCode::kBadValue, "'" + name + "' is no objective", "", "objective", one_of(names)});
  }
  return objective_of(name);
}

}  // namespace

Result<Plan> plan(const Scenario& scenario, const PlanOptions& options) {
  if (Errors errors = out_of_range(options); !errors.empty()) return failure(std::move(errors));
  const DataRoot& data = scenario.data().root();
  auto planner = Planner::make(*document_of(scenario), data.folders);
  if (!planner) return failure(planner.error());
  const PlanInput limits = (*planner)->limits();
  const auto objective = read_objective(options.objective, limits);
  if (!objective) return failure(objective.error());
  auto prices = load_prices({data.prices.folder, options.prices});
  if (!prices) return failure(prices.error());
  Errors errors = check_prices({&(*planner)->space().base()}, *objective, *prices);
  if (!errors.empty()) return failure(std::move(errors));
  const auto questions = questions_of(options, scenario);
  if (!questions) return failure(questions.error());
  const SearchOptions search = options_of(options, scenario, **planner);
  auto result = search_by(*objective, **planner, *prices, search);
  if (!result) return failure(result.error());
  if (result->is_refused()) return failure(refusals(result->space));
  std::vector<WhyNot> answers;
  for (const WhyNotQuestion& question : *questions) {
    answers.push_back(stepcast::why_not(question, search, *result));
  }
  auto recorded = recorded_runs_of_first(**planner, *result, data.folders.profiles);
  if (!recorded) return failure(recorded.error());
  auto balanced = balance_stages(**planner, *result);
  return Plan(std::make_shared<const Plan::Made>(
      Plan::Made{scenario, std::move(*planner), std::move(*result), std::move(*prices), *objective,
                 static_cast<std::size_t>(options.top), std::move(answers), std::move(*recorded),
                 std::move(balanced)}));
}

std::size_t Plan::places() const { return made_->result.found.size(); }
bool Plan::proven() const { return made_->result.proven; }
std::string Plan::layout(std::size_t place) const {
  return choice_text(*made_->planner, made_->result.found.at(place).choice);
}
Seconds Plan::step_time(std::size_t place) const {
  return made_->result.found.at(place).prediction.step_time;
}

Scenario Plan::scenario(std::size_t place) const {
  const Scenario& stated = made_->stated;
  auto out = Scenario::parse(
      stated.data(), stated_with(stated, *made_->planner, made_->result.found.at(place).choice),
      stated.name());
  STEPCAST_ASSERT(out.has_value(), "what was written can be read");
  return std::move(*out);
}

std::string Plan::json() const { return plan_json(made_->report()); }
std::string Plan::csv() const { return plan_csv(made_->report()); }
std::string Plan::text() const { return plan_table(made_->report()); }
std::string Plan::markdown() const { return plan_markdown(made_->report()); }

Result<std::string> Plan::html() const {
  if (places() == 0) return plan_html(made_->report(), nullptr).text();
  stepcast::PredictOptions options;
  options.trace = true;
  const auto first = made_->planner->predict(made_->result.found.front().choice, options);
  if (!first) return failure(first.error());
  return plan_html(made_->report(), &*first).text();
}

}  // namespace stepcast::api
