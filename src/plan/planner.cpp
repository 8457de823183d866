// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <utility>

#include "core/json.h"
#include "layout/scenario_input.h"
#include "plan/frugal_layout.h"
#include "plan/search.h"
#include "plan/space.h"
#include "predict/pricing.h"
#include "schedule/schedule.h"

namespace stepcast {

Planner::Planner(OpenScenario open, const std::vector<ValueRange>& ranges)
    : limits_(open.plan), space_(std::make_unique<const Space>(std::move(open), ranges)) {}

Planner::~Planner() = default;

Result<std::unique_ptr<Planner>> Planner::make(JsonDocument& document, const DataFolders& folders,
                                               const std::vector<ValueRange>& ranges) {
  auto open = read_open_scenario(document, folders, open_paths);
  if (!open) return failure(open.error());
  if (rules_of(open->stated.layout.schedule).from_file) {
    return failure({ErrorCode::kNotSupported,
                    "a search under an order from a file is not "
                    "supported yet",
                    document.file(), "layout.schedule",
                    "name a schedule, or leave it out; predict takes the file"});
  }
  // Bounds of layouts that are never replayed are those of one kind of GPU.
  if (!open->scenario.cluster.spec.other_accelerators.empty()) {
    return failure({ErrorCode::kNotSupported,
                    "a search over GPUs of several models is not supported yet", document.file(),
                    "cluster", "predict takes the cluster with a layout"});
  }
  const Stated stated = open->stated;
  std::unique_ptr<Planner> planner(new Planner(std::move(*open), ranges));
  if (Errors errors = planner->price(stated, folders); !errors.empty()) {
    return failure(std::move(errors));
  }
  return planner;
}

// Without a stated framework a layout's degrees choose it.
Errors Planner::price(const Stated& stated, const DataFolders& folders) {
  std::vector<Framework> frameworks = default_frameworks();
  if (stated.has("training.framework")) frameworks = {stated.training.framework};
  for (const Framework framework : frameworks) {
    Stated of_framework = stated;
    of_framework.training.framework = framework;
    of_framework.mark("training.framework");
    Scenario& scenario = *priced_.emplace_back(std::make_unique<Scenario>(space_->base()));
    resolve(of_framework, scenario);
    auto pricing = make_pricing(scenario, folders);
    if (!pricing) return pricing.error();
    pricing_[framework] = std::move(*pricing);
  }
  return {};
}

Result<SearchResult> Planner::search(const SearchOptions& options) const {
  auto out = stepcast::search(*space_, pricing_, options);
  if (!out || !out->smallest || out->interrupted) return out;
  auto frugal = most_frugal(*this, out->smallest->choice, options);
  // One that is too much for this machine leaves the bound.
  if (!frugal || !*frugal) return out;
  out->smallest->choice = (*frugal)->choice;
  out->smallest->device_bytes = (*frugal)->prediction.peak_device;
  out->smallest_forecast = std::move((*frugal)->prediction);
  return out;
}

std::vector<const Scenario*> Planner::frameworks() const {
  std::vector<const Scenario*> out;
  for (const auto& scenario : priced_) out.push_back(scenario.get());
  return out;
}

Result<Prediction> Planner::predict(const LayoutChoice& choice,
                                    const PredictOptions& options) const {
  Scenario scenario = space_->base();
  space_->put(choice, scenario);
  return stepcast::predict(scenario, *pricing_[scenario.training.framework], options);
}

}  // namespace stepcast
