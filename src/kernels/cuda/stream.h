// SPDX-License-Identifier: Apache-2.0
// Kernels are queued on a stream and run in its order. What they return lies in device memory.
#pragma once

namespace stepcast::cuda {

using Stream = void*;  // a cudaStream_t; null is the default stream

}  // namespace stepcast::cuda
