// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <map>
#include <optional>
#include <vector>

#include "core/assert.h"
#include "kernels/cuda/blas_product.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/gemm_search.h"

namespace stepcast::cuda {
namespace {

cublasLtHandle_t new_handle() {
  if (const auto why = why_no_gpu()) throw CudaError("cublasLtCreate: " + *why);
  cublasLtHandle_t handle = nullptr;
  check_blas(cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

template <typename T>
constexpr cudaDataType_t kType = CUDA_R_32F;
template <>
constexpr cudaDataType_t kType<Bf16> = CUDA_R_16BF;
template <>
constexpr cudaDataType_t kType<Fp16> = CUDA_R_16F;

template <typename T>
cudaDataType_t type_of(const Fp8Numbers& numbers) {
  if (sizeof(T) > 1) return kType<T>;
  return numbers.format == Fp8Format::kE4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

// The result where k is 0: a sum of no products.
template <typename C>
void write_zeros(std::int64_t m, std::int64_t n, const Matrix<C>& c, Stream stream) {
  const auto row = static_cast<std::size_t>(n) * sizeof(C);
  const auto pitch = m == 1 ? row : static_cast<std::size_t>(c.stride) * sizeof(C);
  check(cudaMemset2DAsync(c.data, pitch, 0, row, static_cast<std::size_t>(m),
                          static_cast<cudaStream_t>(stream)),
        "cudaMemset2DAsync");
}

}  // namespace

struct MatrixProducts::Library {
  explicit Library(const GemmSettings& given)
      : settings(given), handle(new_handle()), workspace(given.workspace_bytes) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    known.clear();
    cublasLtDestroy(handle);
  }

  void run(const BlasProblem& problem, const BlasOperands& operands, Stream stream, bool is_rare) {
    const BlasContext context{handle, workspace.data(), settings.workspace_bytes, stream};
    auto found = known.find(problem);
    if (found == known.end()) {
      const auto algorithm = fastest_algorithm(context, problem, is_rare ? 1 : settings.candidates);
      found = known.try_emplace(problem, problem, algorithm).first;
    }
    Known& product = found->second;
    product.described.run(context, operands, product.algorithm);
  }

  // The library's descriptors are made once for each problem: a step calls each often.
  struct Known {
    Known(const BlasProblem& problem, const cublasLtMatmulAlgo_t& chosen)
        : described(problem), algorithm(chosen) {}
    BlasProduct described;
    cublasLtMatmulAlgo_t algorithm;
  };

  const GemmSettings settings;
  const cublasLtHandle_t handle;
  const DeviceMemory workspace;
  std::map<BlasProblem, Known> known;
};

MatrixProducts::MatrixProducts(const GemmSettings& settings)
    : library_(std::make_unique<Library>(settings)) {}
MatrixProducts::~MatrixProducts() = default;

template <typename T, typename C>
void MatrixProducts::gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                          Matrix<const T> b, Matrix<C> c, bool accumulate, Stream stream,
                          const C* bias, const GemmBatch& batch, const GemmHints& hints,
                          const Fp8Operands& fp8) {
  STEPCAST_ASSERT(m >= 0 && n >= 0 && k >= 0 && batch.count >= 0, "sizes of a product");
  STEPCAST_ASSERT(!c.transposed, "the result is written as it is");
  if (m == 0 || n == 0 || batch.count == 0) return;
  if (k == 0) {
    STEPCAST_ASSERT(bias == nullptr, "a bias belongs to a product");
    for (std::int64_t i = 0; !accumulate && i < batch.count; ++i) {
      write_zeros<C>(m, n, {c.data + i * batch.c_step, c.stride}, stream);
    }
    return;
  }
  BlasProblem problem;
  problem.shape = column_major(m, n, k, a, b, c);
  problem.first_in = type_of<T>(fp8.b);
  problem.second_in = type_of<T>(fp8.a);
  problem.out = kType<C>;
  problem.tf32 = library_->settings.tf32;
  problem.fast_sums = hints.fast_sums;
  problem.accumulate = accumulate;
  problem.bias = bias != nullptr;
  problem.batch = batch.count;
  problem.first_step = batch.b_step;
  problem.second_step = batch.a_step;
  problem.out_step = batch.c_step;
  const BlasOperands operands{b.data, a.data, c.data, bias, fp8.b.factor, fp8.a.factor};
  problem.align(operands);
  library_->run(problem, operands, stream, hints.is_rare);
}

#define STEPCAST_INSTANTIATE(T, C)                                                              \
  template void MatrixProducts::gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<const T>, \
                                     Matrix<const T>, Matrix<C>, bool, Stream, const C*,        \
                                     const GemmBatch&, const GemmHints&, const Fp8Operands&);
STEPCAST_INSTANTIATE(float, float)
STEPCAST_INSTANTIATE(Bf16, Bf16)
STEPCAST_INSTANTIATE(Fp16, Fp16)
STEPCAST_INSTANTIATE(Bf16, float)
STEPCAST_INSTANTIATE(Fp16, float)
STEPCAST_INSTANTIATE(Fp8, Bf16)
STEPCAST_INSTANTIATE(Fp8, float)

}  // namespace stepcast::cuda
