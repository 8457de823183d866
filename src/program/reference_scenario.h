// SPDX-License-Identifier: Apache-2.0
// What the numerics of a run are held against.
#pragma once

#include <string>

namespace stepcast {

// The same model on the same batch, in fp32 on one rank in the simplest layout. `scenario` and the
// result are JSON of scenario files.
std::string reference_scenario(const std::string& scenario);

}  // namespace stepcast
