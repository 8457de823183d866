// SPDX-License-Identifier: Apache-2.0
// Whether what a driver or a table calls a device is a given accelerator.
#pragma once

#include <string_view>

#include "cluster/accelerator.h"

namespace stepcast {

// "NVIDIA H100 80GB HBM3" and "H100-80GB-SXM" are h100-sxm5-80g; "NVIDIA GB200" is not b200, and
// "NVIDIA H100 PCIe" no SXM module. What a text leaves out is taken to agree.
bool names_device(std::string_view text, const Accelerator& accelerator);

}  // namespace stepcast
