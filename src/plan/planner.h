// SPDX-License-Identifier: Apache-2.0
// A search made ready: the space of a scenario and what prices it.
#pragma once

#include <memory>
#include <vector>

#include "core/json_fwd.h"
#include "core/result.h"
#include "layout/plan_input.h"
#include "plan/pricing_by_framework.h"
#include "plan/value_range.h"
#include "predict/prediction.h"

namespace stepcast {

class Space;
struct DataFolders;
struct LayoutChoice;
struct OpenScenario;
struct Scenario;
struct SearchOptions;
struct SearchResult;
struct Stated;

class Planner {
 public:
  // All errors of the document, and those of profiles and curves. `ranges`: a part of its space.
  static Result<std::unique_ptr<Planner>> make(JsonDocument& document, const DataFolders& folders,
                                               const std::vector<ValueRange>& ranges = {});

  ~Planner();

  const Space& space() const { return *space_; }
  const PlanInput& limits() const { return limits_; }  // as the scenario states them
  const PricingByFramework& pricing() const { return pricing_; }
  Result<SearchResult> search(const SearchOptions& options) const;
  // A scenario of each framework that layouts of the space may resolve to, its layout any.
  std::vector<const Scenario*> frameworks() const;
  // One layout, as the search replays it.
  Result<Prediction> predict(const LayoutChoice& choice, const PredictOptions& options = {}) const;

 private:
  Planner(OpenScenario open, const std::vector<ValueRange>& ranges);
  Errors price(const Stated& stated, const DataFolders& folders);

  PlanInput limits_;
  std::unique_ptr<const Space> space_;
  std::vector<std::unique_ptr<Scenario>> priced_;  // hold the clusters that prices are of
  PricingByFramework pricing_;
};

}  // namespace stepcast
