// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, row-major as on the CPU: C[m,n] = op(A)[m,k] op(B)[k,n] +
// (accumulate ? C : 0) (+ bias by columns), summed in fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/column_major.h"
#include "kernels/cuda/fp8.h"
#include "kernels/cuda/half_types.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

struct GemmSettings {
  bool tf32 = true;  // products of fp32 on tensor cores, from 10 bits of fraction
  // How many of the library's algorithms are timed for a product of a new shape. The fastest is
  // kept; 1 takes the library's first choice. Timing waits for the stream.
  int candidates = 8;
  std::size_t workspace_bytes = std::size_t{32} << 20;
};

// `count` products; elements from each matrix to the next.
struct GemmBatch {
  std::int64_t count = 1;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};

struct GemmHints {
  bool is_rare = false;    // of sizes that seldom come again: the library's first choice will do
  bool fast_sums = false;  // of fp8: some of the additions in fewer bits, as frameworks do forward
};

// Says what numbers of operands in fp8 stand for. No product has gradients on both sides.
struct Fp8Operands {
  Fp8Numbers a, b;
};

// One workspace: calls of one object go to one stream at a time.
class MatrixProducts {
 public:
  explicit MatrixProducts(const GemmSettings& settings = {});  // throws CudaError
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  // T is float, Bf16 or Fp16, and C is T or float; or T is Fp8, and C is Bf16 or float. `bias` may
  // be null. Products of Fp8 have sizes in multiples of 16, and on Hopper and Ada a as it is and b
  // transposed: their tensor cores take both operands by rows only.
  template <typename T, typename C>
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
            Matrix<C> c, bool accumulate, Stream stream, const C* bias = nullptr,
            const GemmBatch& batch = {}, const GemmHints& hints = {}, const Fp8Operands& fp8 = {});

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepcast::cuda
