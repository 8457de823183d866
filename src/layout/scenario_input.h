// SPDX-License-Identifier: Apache-2.0
// A scenario before its defaults are filled in: what a file states, and what a search
// may still choose.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layout/keys.h"
#include "layout/plan_input.h"
#include "layout/scenario.h"

namespace stepcast {

struct DataFolders;
struct RunSettings;

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
