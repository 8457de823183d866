// SPDX-License-Identifier: Apache-2.0
// Shows what a forecast rests on: the scenario, the profile behind each cost, the definitions.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/text/written.h"

namespace stepcast {

struct Prediction;
struct Profile;
struct Scenario;

Written explanation_text(const Scenario& scenario, const Prediction& prediction,
                         const Profile& profile);
Json explanation_object(const Profile& profile);

}  // namespace stepcast
