// SPDX-License-Identifier: Apache-2.0
#include "layout/islands.h"
#include "layout/scenario_input.h"

namespace stepcast {

void resolve(const Stated& stated, Scenario& scenario) { settle_keys(stated, scenario); }

Scenario resolve(Model model, Cluster cluster, const Stated& stated) {
  Scenario scenario;
  scenario.model = std::move(model);
  scenario.cluster = std::move(cluster);
  scenario.training.outer = stated.training.outer;
  take_one_island(scenario);
  settle_keys(stated, scenario);
  // A model that states no limit (the native form need not) has positions for its sequences.
  if (!scenario.model.max_positions_stated) {
    scenario.model.max_positions = scenario.training.sequence_length;
  }
  return scenario;
}

}  // namespace stepcast
