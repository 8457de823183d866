// SPDX-License-Identifier: Apache-2.0
// Lists what a forecast relies on, piece by piece: the device, the network, and what the framework
// does for each kind of parallelism. Recorded runs say how well the pieces are known
// (measured_errors.h).
#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct Scenario;

// Each once, in a fixed order, in words: "megatron: interleaved pipeline". The scenario is
// resolved.
std::vector<std::string> mechanisms_of(const Scenario& scenario);

}  // namespace stepcast
