// SPDX-License-Identifier: Apache-2.0
// How long calls take on a stream: for choosing between kernels that compute the same.
#pragma once

#include <functional>

#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// The time of `calls` calls in a row, in ms: the median of a few rounds after a first call that
// loads the kernel. Waits for the stream. Throws the CudaError of a call that fails.
float median_time(Stream stream, int calls, const std::function<void()>& call);

}  // namespace stepcast::cuda
