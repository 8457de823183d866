// SPDX-License-Identifier: Apache-2.0
// How the public classes get at the scenario behind their JSON.
#pragma once

#include <memory>

#include "core/json.h"
#include "layout/scenario.h"
#include "stepcast/scenario.h"

namespace stepcast::api {

// The text was whole when the scenario was made.
std::unique_ptr<JsonDocument> document_of(const Scenario& scenario);
stepcast::Result<stepcast::Scenario> read(const Scenario& scenario);

}  // namespace stepcast::api
