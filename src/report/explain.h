// SPDX-License-Identifier: Apache-2.0
// Shows what a forecast rests on: the scenario, the profile behind each cost, the definitions.
#pragma once

#include <string>

#include "core/json_tree.h"
#include "core/text/written.h"
#include "cost/profile.h"
#include "predict/prediction.h"

namespace stepcast {

Written explanation_text(const Scenario& scenario, const Prediction& prediction,
                         const Profile& profile);
Json explanation_object(const Profile& profile);

}  // namespace stepcast
