// SPDX-License-Identifier: Apache-2.0
// The launcher asks the Linux kernel of this machine for these facts.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast {

// Cores that this process may use; hardware threads of one core count once, as Open MPI's slots do.
int usable_cores();

std::string host_name();

// Processes that the kernel has killed since it started because memory ran out, -1: not told. A
// container's kills count too.
std::int64_t out_of_memory_kills();

}  // namespace stepcast
