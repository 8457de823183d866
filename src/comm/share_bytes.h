// SPDX-License-Identifier: Apache-2.0
// Brings a few bytes of rank 0 to all ranks before they can communicate in another way: the id by
// which NCCL knows a group of GPUs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

// Called once by each rank, with equally many bytes; returns those of rank 0.
using ShareBytes = std::function<std::vector<std::byte>(const std::vector<std::byte>& own)>;

// Shares them by a broadcast among the ranks of `group`, which must outlive the result.
ShareBytes share_by(Communicator& group);

}  // namespace stepcast
