// SPDX-License-Identifier: Apache-2.0
// One product as cuBLASLt wants it described. Only for the sources of gemm.h.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/column_major.h"
#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

void check_blas(cublasStatus_t code, const char* call);

// Holds operands in the order of column_major.h: `first` is our B.
struct BlasOperands {
  const void* first;
  const void* second;
  void* out;
  const void* bias;
  const float* first_factor = nullptr;  // of fp8; null: 1
  const float* second_factor = nullptr;
};

// All that the choice of an algorithm depends on.
struct BlasProblem {
  ColumnMajorGemm shape;
  cudaDataType_t first_in = CUDA_R_32F, second_in = CUDA_R_32F, out = CUDA_R_32F;
  bool tf32 = false, accumulate = false, bias = false, fast_sums = false;
  std::int64_t batch = 1, first_step = 0, second_step = 0, out_step = 0;
  std::uint32_t first_alignment = 256, second_alignment = 256, out_alignment = 256;  // bytes

  bool in_fp8() const { return first_in == CUDA_R_8F_E4M3 || first_in == CUDA_R_8F_E5M2; }
  void align(const BlasOperands& operands);
  friend bool operator<(const BlasProblem& a, const BlasProblem& b) { return a.key() < b.key(); }

 private:
  std::vector<std::int64_t> key() const;
};

struct BlasContext {
  cublasLtHandle_t handle;
  void* workspace;
  std::size_t workspace_bytes;
  Stream stream;
};

// The library's descriptors of a problem.
class BlasProduct {
 public:
  explicit BlasProduct(const BlasProblem& problem);
  ~BlasProduct();
  BlasProduct(const BlasProduct&) = delete;
  BlasProduct& operator=(const BlasProduct&) = delete;

  // Lists at most so many algorithms, those first that the library thinks fastest. Throws if it has
  // none.
  std::vector<cublasLtMatmulAlgo_t> algorithms(const BlasContext& context, int most) const;
  void run(const BlasContext& context, const BlasOperands& operands,
           const cublasLtMatmulAlgo_t& algorithm);

 private:
  BlasProblem problem_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, out_ = nullptr;
};

}  // namespace stepcast::cuda
