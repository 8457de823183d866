// SPDX-License-Identifier: Apache-2.0
// A world whose ranks are threads of this process: for tests, and for layouts of more ranks than a
// machine should have processes.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

// One communicator per rank, each to be used by its rank's threads. They outlive each other.
std::vector<std::unique_ptr<Communicator>> thread_world(int ranks);

}  // namespace stepcast
