// SPDX-License-Identifier: Apache-2.0
// Slurm's lists of hosts: "node[4-7,0-3],login1", with leading zeros and several brackets in a
// name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

// In the order in which they are written; of several brackets the last one runs fastest. At most
// as many as a cluster has GPUs.
Result<std::vector<std::string>> expand_hosts(std::string_view text);

// Names in their order, with runs of numbers in brackets: "node[4-7,0-3]".
std::string compress_hosts(const std::vector<std::string>& hosts);

}  // namespace stepcast
