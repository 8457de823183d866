// SPDX-License-Identifier: Apache-2.0
// The unfused form: each step over all scores, as separate kernels.
#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// Calls body(b, h, index of the head in batch x heads).
template <typename Body>
void for_heads(const AttentionShape& shape, const Body& body) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) body(b, h, b * shape.heads + h);
  }
}

// The block of head `index` in an array of batch x heads x sequence x columns.
template <typename T>
Matrix<T> block_of(const AttentionShape& shape, T* data, std::int64_t index, std::int64_t columns) {
  return {data + index * shape.sequence * columns, columns};
}

std::int64_t visible(const AttentionShape& shape, std::int64_t row) {
  return shape.causal ? row % shape.sequence + 1 : shape.sequence;
}

template <typename T>
STEPCAST_INLINE void softmax_row_backward(const T* p, const T* dp, T* out, std::int64_t count,
                                          T scale) {
  Pack<T> products{};
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes)
                          STEPCAST_BODY { products += load(p + i, lanes) * load(dp + i, lanes); });
  const T mean = sum_of_lanes<T>(products);
  for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
    store<T>(load(p + i, lanes) * (load(dp + i, lanes) - mean) * scale, out + i, lanes);
  });
}

}  // namespace

template <typename T>
void attention_scores(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                      T* scores) {
  const std::int64_t s = shape.sequence;
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    gemm<T>(s, s, shape.head_dim, head_of(shape, query, b, h),
            transposed<T>(head_of(shape, key, b, kv_head_of(shape, h))),
            block_of(shape, scores, index, s), false);
  });
}

template <typename T>
void masked_softmax(const AttentionShape& shape, const T* scores, T* probabilities) {
  const T scale = score_scale<T>(shape);
  const std::int64_t s = shape.sequence;
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < shape.batch * shape.heads * s; ++row) {
      const T* in = scores + row * s;
      T* out = probabilities + row * s;
      const std::int64_t count = visible(shape, row);
      const T inverse = 1 / exponentials(in, out, count, scale, largest_of(in, count) * scale);
      for_packs<T>(count, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
        store<T>(load(out + i, lanes) * inverse, out + i, lanes);
      });
      std::fill(out + count, out + s, T(0));
    }
  });
}

template <typename T>
void attention_context(const AttentionShape& shape, const T* probabilities, Heads<const T> value,
                       T* by_head) {
  const std::int64_t s = shape.sequence;
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    gemm<T>(s, shape.head_dim, s, block_of(shape, probabilities, index, s),
            head_of(shape, value, b, kv_head_of(shape, h)),
            block_of(shape, by_head, index, shape.head_dim), false);
  });
}

template <typename T>
void context_transpose(const AttentionShape& shape, const T* by_head, Heads<T> context) {
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    const Matrix<const T> from = block_of(shape, by_head, index, shape.head_dim);
    const Matrix<T> to = head_of(shape, context, b, h);
    for (std::int64_t row = 0; row < shape.sequence; ++row) {
      std::copy_n(from.data + row * from.stride, shape.head_dim, to.data + row * to.stride);
    }
  });
}

template <typename T>
void context_transpose_backward(const AttentionShape& shape, Heads<const T> context_gradient,
                                T* by_head) {
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    const Matrix<const T> from = head_of(shape, context_gradient, b, h);
    const Matrix<T> to = block_of(shape, by_head, index, shape.head_dim);
    for (std::int64_t row = 0; row < shape.sequence; ++row) {
      std::copy_n(from.data + row * from.stride, shape.head_dim, to.data + row * to.stride);
    }
  });
}

template <typename T>
void probabilities_gradient(const AttentionShape& shape, const T* by_head, Heads<const T> value,
                            T* gradient) {
  const std::int64_t s = shape.sequence;
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    gemm<T>(s, s, shape.head_dim, block_of(shape, by_head, index, shape.head_dim),
            transposed<T>(head_of(shape, value, b, kv_head_of(shape, h))),
            block_of(shape, gradient, index, s), false);
  });
}

template <typename T>
void value_gradient(const AttentionShape& shape, const T* probabilities, const T* by_head,
                    T* gradient) {
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim;
  for_heads(shape, [&](std::int64_t, std::int64_t, std::int64_t index) {
    gemm<T>(s, d, s, transposed<T>(block_of(shape, probabilities, index, s)),
            block_of(shape, by_head, index, d), block_of(shape, gradient, index, d), false);
  });
}

template <typename T>
void masked_softmax_backward(const AttentionShape& shape, const T* probabilities,
                             const T* probabilities_gradient, T* scores_gradient) {
  const T scale = score_scale<T>(shape);
  const std::int64_t s = shape.sequence;
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < shape.batch * shape.heads * s; ++row) {
      T* out = scores_gradient + row * s;
      const std::int64_t count = visible(shape, row);
      softmax_row_backward(probabilities + row * s, probabilities_gradient + row * s, out, count,
                           scale);
      std::fill(out + count, out + s, T(0));
    }
  });
}

template <typename T>
void query_gradient(const AttentionShape& shape, const T* scores_gradient, Heads<const T> key,
                    T* gradient) {
  const std::int64_t s = shape.sequence;
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    gemm<T>(s, shape.head_dim, s, block_of(shape, scores_gradient, index, s),
            head_of(shape, key, b, kv_head_of(shape, h)),
            block_of(shape, gradient, index, shape.head_dim), false);
  });
}

template <typename T>
void key_gradient(const AttentionShape& shape, const T* scores_gradient, Heads<const T> query,
                  T* gradient) {
  const std::int64_t s = shape.sequence;
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    gemm<T>(s, shape.head_dim, s, transposed<T>(block_of(shape, scores_gradient, index, s)),
            head_of(shape, query, b, h), block_of(shape, gradient, index, shape.head_dim), false);
  });
}

template <typename T>
void gather_qkv_gradient(const AttentionShape& shape, const T* query_gradient,
                         const T* key_gradient, const T* value_gradient, Heads<T> query,
                         Heads<T> key, Heads<T> value) {
  const std::int64_t d = shape.head_dim;
  context_transpose(shape, query_gradient, query);
  const std::int64_t group = shape.heads / shape.kv_heads;
  const auto gather = [&](const T* from, const Matrix<T>& to, bool first) {
    for (std::int64_t row = 0; row < shape.sequence; ++row, from += d) {
      T* sum = to.data + row * to.stride;
      first ? static_cast<void>(std::copy_n(from, d, sum)) : accumulate(from, sum, d);
    }
  };
  for_heads(shape, [&](std::int64_t b, std::int64_t h, std::int64_t index) {
    const std::int64_t kv = kv_head_of(shape, h);
    const bool first = h % group == 0;
    const std::int64_t start = index * shape.sequence * d;
    gather(key_gradient + start, head_of(shape, key, b, kv), first);
    gather(value_gradient + start, head_of(shape, value, b, kv), first);
  });
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void attention_scores(const AttentionShape&, Heads<const T>, Heads<const T>, T*);       \
  template void masked_softmax(const AttentionShape&, const T*, T*);                               \
  template void attention_context(const AttentionShape&, const T*, Heads<const T>, T*);            \
  template void context_transpose(const AttentionShape&, const T*, Heads<T>);                      \
  template void context_transpose_backward(const AttentionShape&, Heads<const T>, T*);             \
  template void probabilities_gradient(const AttentionShape&, const T*, Heads<const T>, T*);       \
  template void value_gradient(const AttentionShape&, const T*, const T*, T*);                     \
  template void masked_softmax_backward(const AttentionShape&, const T*, const T*, T*);            \
  template void query_gradient(const AttentionShape&, const T*, Heads<const T>, T*);               \
  template void key_gradient(const AttentionShape&, const T*, Heads<const T>, T*);                 \
  template void gather_qkv_gradient(const AttentionShape&, const T*, const T*, const T*, Heads<T>, \
                                    Heads<T>, Heads<T>);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
