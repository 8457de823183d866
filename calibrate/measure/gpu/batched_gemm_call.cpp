// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/rotation.h"
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast {
namespace {

using cuda::Bf16;
using cuda::Fp16;

template <typename T, typename C>
struct Operands {
  Operands(const Gemm& g, const GpuContext& context)
      : turns(g.batch * ((g.m * g.k + g.k * g.n) * static_cast<std::int64_t>(sizeof(T)) +
                         g.m * g.n * static_cast<std::int64_t>(sizeof(C))),
              context.cache_bytes),
        a(turns, g.batch * g.m * g.k, 1),
        b(turns, g.batch * g.k * g.n, 2),
        c(turns, g.batch * g.m * g.n, 3) {}
  Turns turns;
  Rotation<T> a, b;
  Rotation<C> c;
};

// Forward x W^T, input gradient dy W, weight gradient dy^T x, all row-major.
template <typename T, typename C>
GpuCall product(const Gemm& g, const GpuContext& context) {
  auto data = std::make_shared<Operands<T, C>>(g, context);
  return {[g, data, products = &context.kernels->products()](cuda::Stream stream) {
    const bool weight = g.role == GemmRole::kWeightGradient;
    const bool forward = g.role == GemmRole::kForward;
    const Matrix<const T> a{data->a.next(), weight ? g.m : g.k, weight};
    const Matrix<const T> b{data->b.next(), forward ? g.k : g.n, forward};
    products->gemm<T, C>(g.m, g.n, g.k, a, b, {data->c.next(), g.n}, g.accumulate, stream, nullptr,
                         {g.batch, g.m * g.k, g.k * g.n, g.m * g.n});
  }};
}

}  // namespace

GpuCall batched_gemm_call(const Gemm& gemm, const GpuContext& context) {
  const bool wide = size_of(gemm.output) == 4;
  switch (gemm.input) {
    case DataType::kBf16:
      return wide ? product<Bf16, float>(gemm, context) : product<Bf16, Bf16>(gemm, context);
    case DataType::kFp16:
      return wide ? product<Fp16, float>(gemm, context) : product<Fp16, Fp16>(gemm, context);
    case DataType::kFp32:
      return product<float, float>(gemm, context);
    default:
      return {};
  }
}

}  // namespace stepcast
