// SPDX-License-Identifier: Apache-2.0
// A machine as its driver's tools print it: `nvidia-smi topo -m`, `rocm-smi --showtopo` and
// `amd-smi topology`. They say which parts lie close together and count links, but tell no rate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/nccl_machine.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast::nccl {

// The tools do not print these.
struct MatrixRates {
  BytesPerSecond pcie;    // of a slot, each way
  BytesPerSecond nic;     // each way
  std::int64_t nics = 0;  // of the machine, where the tool lists none
};

inline constexpr std::int64_t kMostNics = 1024;  // as in a cluster that is described by keys

// Whether a base is such a file, by its name.
bool is_topology_matrix(std::string_view base);

// One machine. `file` is its name in errors.
Result<File> read_topology_matrix(std::string_view text, const std::string& file,
                                  const MatrixRates& rates);

}  // namespace stepcast::nccl
