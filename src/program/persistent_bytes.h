// SPDX-License-Identifier: Apache-2.0
// Memory that a rank holds through the whole step, without the program of a step.
#pragma once

#include <vector>

#include "core/quantity.h"

namespace stepcast {

struct Scenario;

// Bytes of parameters, gradients, optimizer states and fixed buffers of each stage: what lower()
// writes into Role::persistent. It takes a small part of lower()'s time.
std::vector<ByteCount> persistent_bytes(const Scenario& scenario);

}  // namespace stepcast
