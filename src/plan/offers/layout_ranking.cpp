// SPDX-License-Identifier: Apache-2.0
#include "plan/offers/layout_ranking.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/ranking.h"
#include "plan/search.h"
#include "plan/search_result.h"
#include "plan/space.h"

namespace stepcast {
namespace {

// The value that no layout with at least this step time can improve on.
double least_value(Objective objective, const Planner& planner, const PriceList& prices,
                   Seconds step) {
  double least = std::numeric_limits<double>::infinity();
  for (const Scenario* scenario : planner.frameworks()) {
    const RunOutlook run = run_outlook(*scenario, prices, {step, step, step});
    least = std::min(least, objective_value(objective, step, run.forecast));
  }
  return least;
}

constexpr std::int64_t kUsuallyEnough = 8;  // places

// No layout that was not found takes less than this: the step time of the last of the first `top`
// places by step time.
Seconds last_place(const SearchResult& result, std::int64_t top) {
  std::set<std::pair<double, ByteCount>> places;
  for (const FoundLayout& found : result.found) {
    places.emplace(found.prediction.step_time.value(), found.prediction.peak_device);
  }
  if (static_cast<std::int64_t>(places.size()) < top) {
    return Seconds(std::numeric_limits<double>::infinity());
  }
  return Seconds(std::next(places.begin(), top - 1)->first);
}

// Orders `found`; whether the first `top` places are certain to be those of the objective, when
// the first `searched` are certain to be those of the step time.
bool rank(Objective objective, const Planner& planner, const PriceList& prices, std::int64_t top,
          std::int64_t searched, SearchResult& result) {
  std::vector<double> values;
  for (const FoundLayout& found : result.found) {
    const RunOutlook run = outlook_of(planner, prices, found);
    values.push_back(objective_value(objective, found.prediction.step_time, run.forecast));
  }
  const std::vector<std::size_t> order = put_in_order(values, result);
  const Seconds beyond = last_place(result, searched);
  if (!std::isfinite(beyond.value())) return true;  // all layouts that fit are here
  const double least = least_value(objective, planner, prices, beyond);
  std::int64_t places = 0;
  for (std::size_t i = 0; i < order.size() && places < top; ++i) {
    if (values[order[i]] * (1 + kNearTie) > least) return false;
    const bool shares =
        i > 0 && share_place(result.found[i - 1].prediction, result.found[i].prediction);
    places += shares ? 0 : 1;
  }
  return true;
}

}  // namespace

Result<std::optional<RunOutlook>> outlook_of(const Scenario& scenario, const Prediction& prediction,
                                             const PriceFiles& price_files) {
  if (!scenario.run) return std::nullopt;
  const auto prices = load_prices(price_files);
  if (!prices) return failure(prices.error());
  return run_outlook(scenario, *prices, step_time_of(prediction));
}

RunOutlook outlook_of(const Planner& planner, const PriceList& prices, const FoundLayout& found) {
  Scenario scenario = planner.space().base();
  planner.space().put(found.choice, scenario);
  return run_outlook(scenario, prices, step_time_of(found.prediction));
}

Result<SearchResult> search_by(Objective objective, const Planner& planner, const PriceList& prices,
                               SearchOptions options) {
  const std::int64_t top = options.top;
  share_time_limit(options);
  double spent = 0;
  // A few more places by step time are mostly enough to be certain of one by another objective;
  // another search would compute all bounds again.
  if (objective != Objective::kStepTime && planner.frameworks().size() > 1) {
    options.top = std::max(top, kUsuallyEnough);
  }
  while (true) {
    auto result = planner.search(options);
    if (!result || objective == Objective::kStepTime) return result;
    spent += result->elapsed_s;
    result->elapsed_s = spent;
    const bool certain = rank(objective, planner, prices, top, options.top, *result);
    if (certain || !result->proven) return result;
    if (is_over(options)) {
      result->proven = false;
      result->interrupted = true;
      return result;
    }
    options.top *= 2;
  }
}

}  // namespace stepcast
