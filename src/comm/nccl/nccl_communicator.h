// SPDX-License-Identifier: Apache-2.0
// A group of processes, each with one GPU, that communicate by NCCL. No GPU has run it yet: its
// tests run it on a stand-in for the library (tests/comm/nccl), and on one GPU where there is one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/device_communicator.h"
#include "comm/share_bytes.h"

namespace stepcast {

// Why this process cannot communicate by NCCL: no driver, no GPU, no library. Nothing
// where it can.
std::optional<std::string> why_no_nccl();

struct NcclRank {
  int rank = 0;
  int size = 1;
  int device = 0;  // of this machine; becomes the calling thread's current one
};

// Called by all ranks. Throws CommunicationError with what is missing; a rank that does not come
// within `limit` is an error on the others.
std::unique_ptr<DeviceCommunicator> make_nccl_world(const NcclRank& rank, const ShareBytes& share,
                                                    std::chrono::milliseconds limit);

}  // namespace stepcast
