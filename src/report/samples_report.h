// SPDX-License-Identifier: Apache-2.0
// Samples of a step: how long it takes, and which stages, nodes and ranks cost what.
#pragma once

#include "core/json_fwd.h"
#include "report/document_form.h"

namespace stepcast {

struct Prediction;
struct Scenario;

Written samples_table(const Scenario& scenario, const Prediction& prediction, Form form);
Json samples_object(const Scenario& scenario, const Prediction& prediction);

}  // namespace stepcast
