// SPDX-License-Identifier: Apache-2.0
// Which of the library's algorithms is the fastest here. Only for the sources of gemm.h.
#pragma once

#include "kernels/cuda/blas_product.h"

namespace stepcast::cuda {

// Times the library's first `candidates`, on matrices of its own: of noise, and in so many sets
// that the second-level cache cannot hold all of a large product's. Waits for the stream. With one
// candidate, or without memory for the sets, nothing is timed.
cublasLtMatmulAlgo_t fastest_algorithm(const BlasContext& context, const BlasProblem& problem,
                                       int candidates);

}  // namespace stepcast::cuda
