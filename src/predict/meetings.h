// SPDX-License-Identifier: Apache-2.0
// Who meets whom: the receive of every send, and the collective that ends what a step has in
// flight.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "predict/transfer_shapes.h"

namespace stepcast {

// By stage and instruction: the instruction of the peer stage that a send or receive meets (equal
// pair and tag), -1 for others. A send or receive without a partner is an error.
Result<std::vector<std::vector<std::int32_t>>> match_transfers(const Program& program);

// By rank class: the last collective of the step that the host waits for right away, the norm of
// the gradients. Empty when some class has none.
std::vector<std::int32_t> find_barrier(const SimulationInput& input);

}  // namespace stepcast
