// SPDX-License-Identifier: Apache-2.0
// Ranks in threads of this process, each with an emulated GPU, that communicate by
// NcclCommunicator.
#pragma once

#include <functional>
#include <memory>

#include "comm/device_communicator.h"

namespace stepcast::emulated {

// Runs `body` as every rank, and returns when all have ended. What it throws fails the test.
void as_each_gpu(int ranks, const std::function<void(std::unique_ptr<DeviceCommunicator>)>& body);

}  // namespace stepcast::emulated
