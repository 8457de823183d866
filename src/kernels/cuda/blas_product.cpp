// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/blas_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/cuda_error.h"

namespace stepcast::cuda {
namespace {

std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return static_cast<std::uint32_t>(std::min<std::uintptr_t>(address & (~address + 1), 256));
}

template <typename T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_blas(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
}
template <typename T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  check_blas(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
             "cublasLtMatrixLayoutSetAttribute");
}
template <typename T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
             "cublasLtMatmulPreferenceSetAttribute");
}

cublasLtMatrixLayout_t layout_of(const ColumnMajorMatrix& matrix, cudaDataType_t type,
                                 std::int64_t batch, std::int64_t step) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_blas(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(matrix.rows),
                                        static_cast<std::uint64_t>(matrix.columns), matrix.leading),
             "cublasLtMatrixLayoutCreate");
  set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  return layout;
}

cublasLtMatmulDesc_t operation_of(const BlasProblem& problem) {
  const bool tf32 = problem.tf32 && problem.first_in == CUDA_R_32F;
  cublasLtMatmulDesc_t operation = nullptr;
  check_blas(cublasLtMatmulDescCreate(
                 &operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  const auto transpose = [](const ColumnMajorMatrix& matrix) -> std::int32_t {
    return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, transpose(problem.shape.first));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, transpose(problem.shape.second));
  if (problem.fast_sums) {
    set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(1));
  }
  if (problem.bias) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
        static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_BIAS));
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(problem.out));
  }
  return operation;
}

}  // namespace

void check_blas(cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw CudaError(fmt::format("{}: {}", call, cublasLtGetStatusString(code)));
}

void BlasProblem::align(const BlasOperands& operands) {
  first_alignment = alignment_of(operands.first);
  second_alignment = alignment_of(operands.second);
  out_alignment = alignment_of(operands.out);
}

std::vector<std::int64_t> BlasProblem::key() const {
  std::vector<std::int64_t> parts = {first_in,         second_in,    out,       tf32,
                                     accumulate,       bias,         fast_sums, batch,
                                     first_step,       second_step,  out_step,  first_alignment,
                                     second_alignment, out_alignment};
  for (const ColumnMajorMatrix& matrix : {shape.first, shape.second, shape.out}) {
    parts.insert(parts.end(), {matrix.rows, matrix.columns, matrix.leading, matrix.transposed});
  }
  return parts;
}

BlasProduct::BlasProduct(const BlasProblem& problem) : problem_(problem) {
  operation_ = operation_of(problem);
  const ColumnMajorGemm& shape = problem.shape;
  first_ = layout_of(shape.first, problem.first_in, problem.batch, problem.first_step);
  second_ = layout_of(shape.second, problem.second_in, problem.batch, problem.second_step);
  out_ = layout_of(shape.out, problem.out, problem.batch, problem.out_step);
}

BlasProduct::~BlasProduct() {
  cublasLtMatrixLayoutDestroy(out_);
  cublasLtMatrixLayoutDestroy(second_);
  cublasLtMatrixLayoutDestroy(first_);
  cublasLtMatmulDescDestroy(operation_);
}

std::vector<cublasLtMatmulAlgo_t> BlasProduct::algorithms(const BlasContext& context,
                                                          int most) const {
  cublasLtMatmulPreference_t preference = nullptr;
  check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(context.workspace_bytes));
  // Parts of a sum meet in fp32 and in a fixed order.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem_.first_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem_.second_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem_.out_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem_.out_alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t code =
      cublasLtMatmulAlgoGetHeuristic(context.handle, operation_, first_, second_, out_, out_,
                                     preference, most, results.data(), &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check_blas(code, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulAlgo_t> out;
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) out.push_back(result.algo);
  }
  if (out.empty()) throw CudaError("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  return out;
}

void BlasProduct::run(const BlasContext& context, const BlasOperands& operands,
                      const cublasLtMatmulAlgo_t& algorithm) {
  if (problem_.bias) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (problem_.in_fp8()) {
    set(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.first_factor);
    set(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.second_factor);
  }
  const float alpha = 1, beta = problem_.accumulate ? 1 : 0;
  check_blas(cublasLtMatmul(context.handle, operation_, &alpha, operands.first, first_,
                            operands.second, second_, &beta, operands.out, out_, operands.out, out_,
                            &algorithm, context.workspace, context.workspace_bytes,
                            static_cast<cudaStream_t>(context.stream)),
             "cublasLtMatmul");
}

}  // namespace stepcast::cuda
