// SPDX-License-Identifier: Apache-2.0
// Published nccl-tests tables -> the shipped curves of kernel times
// (calibrate/published/collectives.json -> calibrate/profiles/collectives.json). Takes the host's
// launches out and leaves out what the host, not the GPUs, decided (docs/collectives.md,
// "Sources").
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"

namespace stepcast {

// The text of the profile: the same bytes for the same tables.
Result<std::string> fit_collective_curves(JsonDocument& published);

}  // namespace stepcast
