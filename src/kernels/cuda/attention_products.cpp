// SPDX-License-Identifier: Apache-2.0
// The products of the unfused form. In every group the member at a given place is equally far from
// that of the next group, and so are their keys. So one batch serves each sequence and place in a
// group.
#include "core/assert.h"
#include "kernels/cuda/attention_unfused.h"

namespace stepcast::cuda {
namespace {

// Matrices of one batch; `step` from the head of one group to that of the next.
template <typename T>
struct HeadMatrices {
  Matrix<T> first;
  std::int64_t step;
};

// A place in the batches: sequence b, member `member` of every group.
struct Place {
  const AttentionShape& shape;
  std::int64_t b, member;

  std::int64_t group() const { return shape.heads / shape.kv_heads; }
  // Query heads inside rows of tokens.
  template <typename T>
  HeadMatrices<T> queries(const Heads<T>& heads) const {
    return {
        {heads.data + b * shape.sequence * heads.stride + member * shape.head_dim, heads.stride},
        group() * shape.head_dim};
  }
  template <typename T>
  HeadMatrices<T> keys(const Heads<T>& heads) const {
    return {{heads.data + b * shape.sequence * heads.stride, heads.stride}, shape.head_dim};
  }
  // The blocks of an array that holds batch x heads x sequence x columns.
  template <typename T>
  HeadMatrices<T> blocks(T* data, std::int64_t columns) const {
    const std::int64_t block = shape.sequence * columns;
    return {{data + (b * shape.heads + member) * block, columns}, group() * block};
  }
};

template <typename T>
HeadMatrices<T> transposed(HeadMatrices<T> of) {
  of.first.transposed = !of.first.transposed;
  return of;
}

template <typename Body>
void for_places(const AttentionShape& shape, const Body& body) {
  STEPCAST_ASSERT(shape.heads % shape.kv_heads == 0, "groups of as many query heads each");
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t member = 0; member < shape.heads / shape.kv_heads; ++member) {
      body(Place{shape, b, member});
    }
  }
}

template <typename T>
void multiply(MatrixProducts& products, const AttentionShape& shape, std::int64_t n, std::int64_t k,
              const HeadMatrices<const T>& a, const HeadMatrices<const T>& b,
              const HeadMatrices<T>& c, Stream stream) {
  products.gemm<T, T>(shape.sequence, n, k, a.first, b.first, c.first, false, stream, nullptr,
                      {shape.kv_heads, a.step, b.step, c.step});
}

}  // namespace

template <typename T>
void attention_scores(MatrixProducts& products, const AttentionShape& shape, Heads<const T> query,
                      Heads<const T> key, T* scores, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.sequence, shape.head_dim, at.queries(query),
                transposed(at.keys(key)), at.blocks(scores, shape.sequence), stream);
  });
}

template <typename T>
void attention_context(MatrixProducts& products, const AttentionShape& shape,
                       const T* probabilities, Heads<const T> value, T* by_head, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.head_dim, shape.sequence,
                at.blocks(probabilities, shape.sequence), at.keys(value),
                at.blocks(by_head, shape.head_dim), stream);
  });
}

template <typename T>
void probabilities_gradient(MatrixProducts& products, const AttentionShape& shape, const T* by_head,
                            Heads<const T> value, T* gradient, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.sequence, shape.head_dim, at.blocks(by_head, shape.head_dim),
                transposed(at.keys(value)), at.blocks(gradient, shape.sequence), stream);
  });
}

template <typename T>
void value_gradient(MatrixProducts& products, const AttentionShape& shape, const T* probabilities,
                    const T* by_head, T* gradient, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.head_dim, shape.sequence,
                transposed(at.blocks(probabilities, shape.sequence)),
                at.blocks(by_head, shape.head_dim), at.blocks(gradient, shape.head_dim), stream);
  });
}

template <typename T>
void query_gradient(MatrixProducts& products, const AttentionShape& shape, const T* scores_gradient,
                    Heads<const T> key, T* gradient, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.head_dim, shape.sequence,
                at.blocks(scores_gradient, shape.sequence), at.keys(key),
                at.blocks(gradient, shape.head_dim), stream);
  });
}

template <typename T>
void key_gradient(MatrixProducts& products, const AttentionShape& shape, const T* scores_gradient,
                  Heads<const T> query, T* gradient, Stream stream) {
  for_places(shape, [&](const Place& at) {
    multiply<T>(products, shape, shape.head_dim, shape.sequence,
                transposed(at.blocks(scores_gradient, shape.sequence)), at.queries(query),
                at.blocks(gradient, shape.head_dim), stream);
  });
}

#define STEPCAST_INSTANTIATE(T)                                                                    \
  template void attention_scores(MatrixProducts&, const AttentionShape&, Heads<const T>,           \
                                 Heads<const T>, T*, Stream);                                      \
  template void attention_context(MatrixProducts&, const AttentionShape&, const T*,                \
                                  Heads<const T>, T*, Stream);                                     \
  template void probabilities_gradient(MatrixProducts&, const AttentionShape&, const T*,           \
                                       Heads<const T>, T*, Stream);                                \
  template void value_gradient(MatrixProducts&, const AttentionShape&, const T*, const T*, T*,     \
                               Stream);                                                            \
  template void query_gradient(MatrixProducts&, const AttentionShape&, const T*, Heads<const T>,   \
                               T*, Stream);                                                        \
  template void key_gradient(MatrixProducts&, const AttentionShape&, const T*, Heads<const T>, T*, \
                             Stream);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(Bf16)
STEPCAST_INSTANTIATE(Fp16)

}  // namespace stepcast::cuda
