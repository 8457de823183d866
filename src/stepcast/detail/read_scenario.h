// SPDX-License-Identifier: Apache-2.0
// How the public classes get at the scenario behind their JSON.
#pragma once

#include <memory>

#include "stepcast/scenario.h"

namespace stepcast {
class JsonDocument;
struct Scenario;
}  // namespace stepcast

namespace stepcast::api {

// The text was whole when the scenario was made.
std::unique_ptr<JsonDocument> document_of(const Scenario& scenario);
stepcast::Result<stepcast::Scenario> read(const Scenario& scenario);

}  // namespace stepcast::api
