// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/advise.h"

#include <algorithm>

#include "core/gathered_errors.h"
#include "layout/scenario.h"
#include "plan/advise/ways_out.h"

namespace stepcast {
namespace {

bool climbs(const Rung& rung, const Scenario& base) {
  const bool of_mode = std::ranges::find(rung.modes, base.training.mode) != rung.modes.end();
  const bool of_model = !rung.of_experts || base.model.moe.has_value();
  return of_mode && of_model && (rung.one_gpu || base.cluster.gpus() > 1);
}

// Whether a rung that meets the demands leaves GPUs idle that nobody said are not needed.
bool spares_gpus(const RungResult& result, const AdviceInput& input) {
  return result.gpus < input.base.cluster.gpus() && !input.demands.of_speed();
}

// Simplicity is not wanted at any price: all of 16,384 GPUs in one pipeline are simple and idle.
void pass_by_slow_rungs(Advice& advice) {
  if (advice.demands.of_speed()) return;
  const RungResult* fastest = nullptr;
  for (const RungResult& result : advice.rungs) {
    if (result.verdict != RungVerdict::kAbove) continue;
    if (fastest == nullptr || speed_against(result, *fastest) > 1) fastest = &result;
  }
  for (RungResult& result : advice.rungs) {
    if (result.verdict == RungVerdict::kAbove &&
        speed_against(*fastest, result) > kWorthItsComplexity) {
      result.verdict = RungVerdict::kBehind;
    }
  }
}

void choose(Advice& advice) {
  pass_by_slow_rungs(advice);
  for (const RungVerdict verdict : {RungVerdict::kAbove, RungVerdict::kSpare}) {
    const auto first = std::ranges::find(advice.rungs, verdict, &RungResult::verdict);
    if (first == advice.rungs.end()) continue;
    first->verdict = RungVerdict::kAdvised;
    advice.advised = static_cast<std::size_t>(first - advice.rungs.begin());
    break;
  }
  if (!advice.advised) return;
  for (std::size_t i = *advice.advised + 1; i < advice.rungs.size(); ++i) {
    if (advice.rungs[i].verdict == RungVerdict::kBehind) {
      advice.rungs[i].verdict = RungVerdict::kAbove;
    }
  }
}

std::vector<const Rung*> rungs_to_climb(const Scenario& base) {
  std::vector<const Rung*> out;
  for (const Rung& rung : ladder()) {
    if (climbs(rung, base)) out.push_back(&rung);
  }
  return out;
}

Errors why_all_refused(const Advice& advice) {
  Errors errors;
  for (const RungResult& result : advice.rungs) {
    if (result.verdict != RungVerdict::kRefused) return {};
    add_new(result.objections, errors);
  }
  return errors;
}

}  // namespace

Result<Advice> advise(const AdviceInput& input) {
  Advice advice;
  advice.demands = input.demands;
  const std::int64_t all = input.base.cluster.gpus();
  AdviceInput of_rung = input;
  share_time_limit(of_rung.search);
  const SearchOptions search = of_rung.search;
  const std::vector<const Rung*> rungs = rungs_to_climb(input.base);
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (stopped(search)) {
      advice.interrupted = true;
      break;
    }
    // A rung that needs less than its share leaves the rest to those above it.
    of_rung.search = with_share_of_time(search, rungs.size() - i);
    auto result = search_rung(of_rung, *rungs[i], rungs[i]->one_gpu ? 1 : all);
    if (!result) return failure(result.error());
    advice.interrupted = advice.interrupted || result->interrupted;
    if (result->meets() && spares_gpus(*result, input)) result->verdict = RungVerdict::kSpare;
    advice.rungs.push_back(std::move(*result));
  }
  choose(advice);
  if (advice.advised || advice.interrupted) return advice;
  if (Errors errors = why_all_refused(advice); !errors.empty()) return failure(std::move(errors));
  of_rung.search = search;
  auto ways = ways_out(of_rung, advice.rungs);
  if (!ways) return failure(ways.error());
  advice.ways_out = std::move(*ways);
  // A search that was cut short says nothing about what it did not try.
  advice.interrupted = is_over(search);
  std::erase_if(advice.ways_out,
                [](const RungResult& way) { return way.interrupted && !way.fits; });
  return advice;
}

double speed_against(const RungResult& one, const RungResult& other) {
  return other.layout->prediction.step_time / one.layout->prediction.step_time;
}

const RungResult* best_above(const Advice& advice) {
  std::vector<const RungResult*> above;
  for (std::size_t i = *advice.advised + 1; i < advice.rungs.size(); ++i) {
    if (advice.rungs[i].meets()) above.push_back(&advice.rungs[i]);
  }
  const auto slower = [](const RungResult* a, const RungResult* b) {
    return speed_against(*a, *b) < 1;
  };
  const auto fastest = std::ranges::max_element(above, slower);
  if (fastest == above.end()) return nullptr;
  return *std::ranges::find_if(above, [&](const RungResult* one) {
    return speed_against(**fastest, *one) <= kNoticeableSpeed;
  });
}

}  // namespace stepcast
