// SPDX-License-Identifier: Apache-2.0
// The optimisations of a scenario, each turned off with what depends on it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "layout/scenario.h"

namespace stepcast::cli {

struct Ablation {
  std::string name;               // "sequence_parallel, overlap.tp": what is off
  std::vector<std::string> sets;  // "layout.sequence_parallel=false"
};

// `read` makes the scenario with these keys set. One whose rest a rule refuses is among them: its
// row then says why it cannot be left out.
std::vector<Ablation> ablations_of(
    const Scenario& base,
    const std::function<Result<Scenario>(const std::vector<std::string>& sets)>& read);

}  // namespace stepcast::cli
