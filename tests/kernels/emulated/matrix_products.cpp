// SPDX-License-Identifier: Apache-2.0
// Matrix products on the emulated device: three loops in the place of cuBLASLt.
#include <cuda_runtime_api.h>

#include <type_traits>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/gemm.h"
#include "kernels/half_values.h"

namespace stepcast::cuda {

struct MatrixProducts::Library {};
MatrixProducts::MatrixProducts(const GemmSettings&) {}
MatrixProducts::~MatrixProducts() = default;

template <typename T, typename C>
void MatrixProducts::gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                          Matrix<const T> b, Matrix<C> c, bool accumulate, Stream stream,
                          const C* bias, const GemmBatch& batch, const GemmHints&,
                          const Fp8Operands& fp8) {
  const bool both_gradients = fp8.a.format == Fp8Format::kE5m2 && fp8.b.format == Fp8Format::kE5m2;
  if (both_gradients) throw CudaError("products of fp8 have one operand in e4m3");
  if (sizeof(T) == 1 && (a.transposed || !b.transposed || m % 16 + n % 16 + k % 16 != 0)) {
    throw CudaError("products of fp8 take both operands by rows, of multiples of 16");
  }
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  const auto at = [](const auto& matrix, Fp8Format format, std::int64_t row, std::int64_t column) {
    const std::int64_t place =
        matrix.transposed ? column * matrix.stride + row : row * matrix.stride + column;
    if constexpr (sizeof(T) == 1) return to_float(matrix.data[place], format);
    if constexpr (sizeof(T) > 1) return to_float(matrix.data[place]);
  };
  float factor = 1;
  for (const float* of_operand : {fp8.a.factor, fp8.b.factor}) {
    if (of_operand != nullptr) factor *= *of_operand;
  }
  for (std::int64_t i = 0; i < batch.count; ++i) {
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        C& result = c.data[row * c.stride + column];
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          sum += at(a, fp8.a.format, row, l) * at(b, fp8.b.format, l, column);
        }
        sum *= factor;
        if (accumulate) sum += to_float(result);
        if (bias != nullptr) sum += to_float(bias[column]);
        result = rounded<C>(sum);
      }
    }
    a.data += batch.a_step;
    b.data += batch.b_step;
    c.data += batch.c_step;
  }
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
