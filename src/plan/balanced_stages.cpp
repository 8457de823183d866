// SPDX-License-Identifier: Apache-2.0
#include "plan/balanced_stages.h"

#include "layout/balanced_layers.h"
#include "layout/findings.h"
#include "layout/legality.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "plan/launchable.h"
#include "plan/planner.h"
#include "plan/search_result.h"
#include "plan/space.h"

namespace stepcast {

std::optional<BalancedStages> balance_stages(const Planner& planner, const SearchResult& result) {
  if (result.found.empty() || result.interrupted) return std::nullopt;
  const FoundLayout& first = result.found.front();
  Scenario scenario = planner.space().base();
  planner.space().put(first.choice, scenario);
  Layout& layout = scenario.layout;
  if (!layout.stage_layers.empty() || layout.account_for_embedding || layout.account_for_loss) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> layers = balanced_layers(scenario);
  if (layers.empty() || layers == deal_layers(scenario.model.layers, layout)) return std::nullopt;
  layout.stage_layers = layers;
  Stated stated;
  stated.mark("layout.stage_layers");
  Findings findings;
  check_legality(scenario, stated, findings);
  check_support(scenario, findings);
  if (findings.errors().empty()) check_launchable(scenario, stated, findings);
  if (!findings.errors().empty()) return std::nullopt;
  const auto forecast = predict(scenario, *planner.pricing()[scenario.training.framework], {});
  if (!forecast || forecast->peak_device > result.memory_limit) return std::nullopt;
  if (forecast->step_time > (1 - kNearTie) * first.prediction.step_time) return std::nullopt;
  return BalancedStages{layers, forecast->step_time};
}

}  // namespace stepcast
