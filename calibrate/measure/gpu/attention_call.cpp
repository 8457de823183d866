// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/rotation.h"
#include "kernels/cuda/attention_choice.h"

namespace stepcast {
namespace {

template <typename T>
struct Tensors {
  Tensors(const Attention& a, const GpuContext& context)
      : shape{a.batch, a.heads, a.kv_heads, a.query_length, a.head_dim, a.causal},
        query_width(a.heads * a.head_dim),
        key_width(a.kv_heads * a.head_dim),
        tokens(a.batch * a.query_length),
        turns(tokens * (2 * query_width + 2 * key_width) * (a.backward ? 2 : 1) *
                  static_cast<std::int64_t>(sizeof(T)),
              context.cache_bytes),
        query(turns, tokens * query_width, 1),
        key(turns, tokens * key_width, 2),
        value(turns, tokens * key_width, 3),
        context_(turns, tokens * query_width, 4),
        log_sum(std::vector<float>(static_cast<std::size_t>(tokens * a.heads), kLogSum)),
        row_products(tokens * a.heads) {
    if (!a.backward) return;
    context_gradient = std::make_unique<Rotation<T>>(turns, tokens * query_width, 5);
    query_gradient = std::make_unique<Rotation<T>>(turns, tokens * query_width, 6);
    key_gradient = std::make_unique<Rotation<T>>(turns, tokens * key_width, 7);
    value_gradient = std::make_unique<Rotation<T>>(turns, tokens * key_width, 8);
  }

  // About the logarithm of a row's sum for scores near 0; backward recomputes probabilities with
  // it.
  static constexpr float kLogSum = 6;

  cuda::AttentionShape shape;
  std::int64_t query_width, key_width, tokens;
  Turns turns;
  Rotation<T> query, key, value, context_;
  cuda::DeviceArray<float> log_sum, row_products;
  std::unique_ptr<Rotation<T>> context_gradient, query_gradient, key_gradient, value_gradient;
};

template <typename T>
GpuCall call(const Attention& a, const GpuContext& context) {
  auto data = std::make_shared<Tensors<T>>(a, context);
  cuda::AttentionKernels& kernels = *context.attention;
  if (!a.backward) {
    return {[data, &kernels](cuda::Stream stream) {
      Tensors<T>& d = *data;
      const cuda::ForwardArrays<T> arrays{{d.query.next(), d.query_width},
                                          {d.key.next(), d.key_width},
                                          {d.value.next(), d.key_width},
                                          {d.context_.next(), d.query_width},
                                          d.log_sum.data()};
      kernels.forward(d.shape, arrays, stream);
    }};
  }
  return {[data, &kernels](cuda::Stream stream) {
    Tensors<T>& d = *data;
    const cuda::BackwardArrays<T> arrays{{d.query.next(), d.query_width},
                                         {d.key.next(), d.key_width},
                                         {d.value.next(), d.key_width},
                                         {d.context_.next(), d.query_width},
                                         d.log_sum.data(),
                                         {d.context_gradient->next(), d.query_width},
                                         {d.query_gradient->next(), d.query_width},
                                         {d.key_gradient->next(), d.key_width},
                                         {d.value_gradient->next(), d.key_width},
                                         d.row_products.data()};
    kernels.backward(d.shape, arrays, stream);
  }};
}

}  // namespace

GpuCall attention_call(const Attention& a, const GpuContext& context) {
  if (a.query_length != a.key_length || a.head_dim > cuda::kLargestHead) return {};
  switch (a.type) {
    case DataType::kBf16:
      return call<cuda::Bf16>(a, context);
    case DataType::kFp16:
      return call<cuda::Fp16>(a, context);
    case DataType::kFp32:
      return call<float>(a, context);
    default:
      return {};
  }
}

}  // namespace stepcast
