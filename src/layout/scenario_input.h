// SPDX-License-Identifier: Apache-2.0
// A scenario before its defaults are filled in: what a file states, and what a search
// may still choose.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "layout/keys.h"
#include "layout/scenario.h"

namespace stepcast {

// Quantiles of the step time that places may be ranked by. Below the half a search would prefer
// what is least known.
inline constexpr double kLeastRisk = 0.5, kMostRisk = 0.99;

// The object `plan`: limits of a search.
struct PlanInput {
  std::optional<std::string> objective;    // step_time, cost or goodput
  std::optional<std::int64_t> max_gpus;    // of the cluster
  std::optional<double> memory_margin;     // of the device's memory, to be left free
  std::optional<double> risk;              // the quantile of the step time that ranks places
  std::optional<double> min_tokens_per_s;  // of all GPUs: what an advice must reach
};
PlanInput read_plan(const JsonValue& value);

RunSettings read_run(const JsonValue& value);

// Fills in every default. The second writes training, layout and rules of a scenario whose model
// and cluster stand. Values that contradict each other stay as they are: check_legality() names
// them.
Scenario resolve(Model model, Cluster cluster, const Stated& stated);
void resolve(const Stated& stated, Scenario& scenario);

// A scenario whose layout is open where its file leaves it open: what a search starts from.
struct OpenScenario {
  Scenario scenario;  // model, cluster and profile; the rest as resolve() fills it in, legal or not
  Stated stated;
  PlanInput plan;
};

// Like read_scenario(), without the rules that read one of the keys that `open` names for it.
using OpenKeys = std::function<std::vector<std::string>(const Stated&)>;
Result<OpenScenario> read_open_scenario(JsonDocument& document, const DataFolders& folders,
                                        const OpenKeys& open);

}  // namespace stepcast
