// SPDX-License-Identifier: Apache-2.0
// A group of GPUs as a Communicator, for the contract that both keep: data goes to device memory
// and back on a stream of the view's own, which the group's operations follow and hold.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/device_communicator.h"

namespace stepcast {

// Groups are made by all ranks at once, in the order of ranks, and each rank is in one of them;
// messages have no tags; there are no counters.
std::unique_ptr<Communicator> host_view(std::unique_ptr<DeviceCommunicator> group);

}  // namespace stepcast
