// SPDX-License-Identifier: Apache-2.0
// A world whose ranks are threads of this process: the real collectives without mpirun. Messages
// pass between threads: whoever comes second, sender or receiver, copies the bytes.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

// One communicator for each rank, to be used by its rank's threads. They outlive each other.
std::vector<std::unique_ptr<Communicator>> thread_world(int ranks);

}  // namespace stepcast
