// SPDX-License-Identifier: Apache-2.0
// A search proposes only what the framework's code of `training.release` can launch on that
// hardware. A key that the scenario states is asked for and left alone.
#pragma once

#include "layout/findings.h"

namespace stepcast {

struct Scenario;
struct Stated;

// The layout must be legal. `asked` tells which keys the user has stated.
void check_launchable(const Scenario& scenario, const Stated& asked, Findings& findings);

// Why a search would not propose this layout of its own accord; none: it would.
Errors not_proposed(const Scenario& scenario);

}  // namespace stepcast
