// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <utility>

namespace stepcast {

Planner::Planner(OpenScenario open, const std::vector<ValueRange>& ranges)
    : limits_(open.plan), space_(std::move(open), ranges) {}

Result<std::unique_ptr<Planner>> Planner::make(JsonDocument& document, const DataFolders& folders,
                                               const std::vector<ValueRange>& ranges) {
  auto open = read_open_scenario(document, folders, open_paths);
  if (!open) return failure(open.error());
  const TrainingInput training = open->training;
  const LayoutInput layout = open->layout;
  std::unique_ptr<Planner> planner(new Planner(std::move(*open), ranges));
  if (Errors errors = planner->price(training, layout, folders); !errors.empty()) {
    return failure(std::move(errors));
  }
  return planner;
}

// Without a stated framework a layout's degrees choose between these two (layout/resolve.cpp).
Errors Planner::price(const TrainingInput& training, const LayoutInput& layout,
                      const DataFolders& folders) {
  std::vector<Framework> frameworks = {Framework::kMegatron, Framework::kFsdp};
  if (training.framework) frameworks = {*training.framework};
  for (const Framework framework : frameworks) {
    TrainingInput stated = training;
    stated.framework = framework;
    Scenario& scenario = *priced_.emplace_back(std::make_unique<Scenario>(space_.base()));
    resolve(stated, layout, scenario);
    auto pricing = make_pricing(scenario, folders);
    if (!pricing) return pricing.error();
    pricing_[static_cast<std::size_t>(framework)] = std::move(*pricing);
  }
  return {};
}

Result<Prediction> Planner::predict(const LayoutChoice& choice) const {
  Scenario scenario = space_.base();
  space_.put(choice, scenario);
  return stepcast::predict(scenario,
                           *pricing_[static_cast<std::size_t>(scenario.training.framework)]);
}

}  // namespace stepcast
