// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/rotation.h"
#include "kernels/cuda/cuda_kernels.h"

namespace stepcast {
namespace {

using cuda::Bf16;
using cuda::Fp8;

constexpr std::int64_t kMultiple = 16;  // of every size

// Both operands by rows, as a cast writes them for this product: x and W forward, dy and the
// transposed W for the input's gradient, dy and x transposed for that of the weight.
template <typename C>
GpuCall product(const Gemm& g, const GpuContext& context) {
  struct Operands {
    Operands(const Gemm& of, std::int64_t cache_bytes)
        : turns(of.batch *
                    ((of.m + of.n) * of.k + of.m * of.n * static_cast<std::int64_t>(sizeof(C))),
                cache_bytes),
          a(turns, of.batch * of.m * of.k, 1),
          b(turns, of.batch * of.k * of.n, 2),
          c(turns, of.batch * of.m * of.n, 3) {}
    Turns turns;
    Rotation<Fp8> a, b;
    Rotation<C> c;
  };
  auto data = std::make_shared<Operands>(g, context.cache_bytes);
  return {[g, data, products = &context.kernels->products()](cuda::Stream stream) {
    const bool forward = g.role == GemmRole::kForward;
    products->gemm<Fp8, C>(g.m, g.n, g.k, {data->a.next(), g.k}, {data->b.next(), g.k, true},
                           {data->c.next(), g.n}, g.accumulate, stream, nullptr,
                           {g.batch, g.m * g.k, g.k * g.n, g.m * g.n}, {.fast_sums = forward});
  }};
}

}  // namespace

GpuCall fp8_gemm_call(const Gemm& gemm, const GpuContext& context) {
  for (const std::int64_t size : {gemm.m, gemm.n, gemm.k}) {
    if (size % kMultiple != 0) return {};
  }
  return size_of(gemm.output) == 4 ? product<float>(gemm, context) : product<Bf16>(gemm, context);
}

GpuCall fp8_cast_call(const Cast& cast, const GpuContext& context) {
  if (cast.from != DataType::kBf16) return {};
  struct Tensors {
    Tensors(std::int64_t elements, std::int64_t bytes, std::int64_t cache_bytes)
        : turns(bytes, cache_bytes),
          x(turns, elements, 1),
          by_rows(turns, elements, 2),
          by_columns(turns, elements, 3),
          largest(cuda::kLargestBlocks + 1) {
      cuda::fill(largest.data(), 1.0F, cuda::kLargestBlocks + 1, nullptr);
    }
    Turns turns;
    Rotation<Bf16> x;
    Rotation<Fp8> by_rows, by_columns;
    cuda::DeviceArray<float> largest;  // the figure, then the workspace
  };
  const std::int64_t elements = cast.size.elements;
  auto data = std::make_shared<Tensors>(elements, static_cast<std::int64_t>(cast.size.bytes),
                                        context.cache_bytes);
  if (cast.subject == CastSubject::kScale) {
    return {[data, elements](cuda::Stream stream) {
              cuda::find_largest(data->x.next(), elements, data->largest.data() + 1,
                                 data->largest.data(), false, stream);
            },
            2.0 * static_cast<double>(elements)};
  }
  // A cast does not say how its rows lie; their width changes little.
  std::int64_t columns = 1;
  while (columns < 4096 && elements % (2 * columns) == 0) columns *= 2;
  const bool both = cast.size.launches > 1;
  const Fp8Format format = cast.backward ? Fp8Format::kE5m2 : Fp8Format::kE4m3;
  return {[data, elements, columns, both, format](cuda::Stream stream) {
            Fp8* const by_columns = both ? data->by_columns.next() : nullptr;
            cuda::cast_to_fp8(format, data->x.next(), data->largest.data(), nullptr,
                              elements / columns, columns, data->by_rows.next(), by_columns,
                              stream);
          },
          (both ? 4.0 : 3.0) * static_cast<double>(elements)};
}

}  // namespace stepcast
