// SPDX-License-Identifier: Apache-2.0
// Kernels on the calling thread, in fp32. They have run when they return.
#pragma once

#include <memory>

#include "kernels/kernels.h"

namespace stepcast {

std::unique_ptr<Kernels> make_cpu_kernels();

}  // namespace stepcast
