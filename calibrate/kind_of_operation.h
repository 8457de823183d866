// SPDX-License-Identifier: Apache-2.0
// The kind of a GPU's kernel that does an operation.
#pragma once

#include <optional>

#include "calibrate/gpu_kernel_kind.h"
#include "operation/operation.h"

namespace stepcast {

// None where a GPU's profile has no curve for the kernel.
std::optional<GpuKernelKind> gpu_kernel_kind(const Operation::Work& work);

}  // namespace stepcast
