// SPDX-License-Identifier: Apache-2.0
// Attention over packed rows [queries | keys | values | two spare elements], naive, fused and
// unfused.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/numbers.h"

namespace stepcast::cpu {

template <typename T>
struct AttentionCase {
  AttentionShape shape;
  std::int64_t width = shape.heads * shape.head_dim;
  std::int64_t kv_width = shape.kv_heads * shape.head_dim;
  std::int64_t value_width = shape.kv_heads * shape.value_width();
  std::int64_t context_width = shape.heads * shape.value_width();
  std::int64_t stride = width + kv_width + value_width + 2;
  std::int64_t rows = shape.batch * shape.sequence;
  std::int64_t all_scores = rows * shape.heads * shape.sequence;
  std::vector<T> packed = numbers<T>(rows * stride, 1);
  std::vector<T> probe = numbers<T>(rows * context_width, 2);  // gradient of the context

  Heads<const T> query() const { return {packed.data(), stride}; }
  Heads<const T> key() const { return {packed.data() + width, stride}; }
  Heads<const T> value() const { return {packed.data() + width + kv_width, stride}; }
};

template <typename T>
struct Attended {
  std::vector<T> context, log_sum_exp;
};

inline bool is_hidden(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  if (!shape.causal) return false;
  const bool too_old = shape.window > 0 && query - key >= shape.window;
  const bool elsewhere = shape.chunk > 0 && query / shape.chunk != key / shape.chunk;
  return key > query || too_old || elsewhere;
}

inline Attended<double> naive(const AttentionCase<double>& c) {
  const std::int64_t heads = c.shape.heads, kv_heads = c.shape.kv_heads, s = c.shape.sequence,
                     d = c.shape.head_dim, width = c.shape.value_width();
  Attended<double> out{zeros<double>(c.rows * c.context_width), zeros<double>(c.rows * heads)};
  for (std::int64_t i = 0; i < c.rows * heads; ++i) {
    const std::int64_t b = i / (heads * s), h = i / s % heads, row = i % s;
    const std::int64_t kv = h / (heads / kv_heads);
    const double* q = c.query().data + (b * s + row) * c.stride + h * d;
    double* to = out.context.data() + (b * s + row) * c.context_width + h * width;
    double sum = 0;
    for (std::int64_t column = 0; column < s; ++column) {
      if (is_hidden(c.shape, row, column)) continue;
      const double* k = c.key().data + (b * s + column) * c.stride + kv * d;
      const double* v = c.value().data + (b * s + column) * c.stride + kv * width;
      double score = 0;
      for (std::int64_t e = 0; e < d; ++e) score += q[e] * k[e];
      const double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
      sum += weight;
      for (std::int64_t e = 0; e < width; ++e) to[e] += weight * v[e];
    }
    for (std::int64_t e = 0; e < width; ++e) to[e] /= sum;
    out.log_sum_exp[static_cast<std::size_t>(i)] = std::log(sum);
  }
  return out;
}

template <typename T>
Attended<T> fused(const AttentionCase<T>& c) {
  Attended<T> out{zeros<T>(c.rows * c.context_width), zeros<T>(c.rows * c.shape.heads)};
  attention<T>(c.shape, c.query(), c.key(), c.value(), {out.context.data(), c.context_width},
               out.log_sum_exp.data());
  return out;
}

// Packed as the inputs are; every element but the spare ones is written.
template <typename T>
std::vector<T> fused_gradient(const AttentionCase<T>& c) {
  const Attended<T> forward = fused(c);
  auto out = zeros<T>(c.rows * c.stride);
  for (std::int64_t row = 0; row < c.rows; ++row) {
    std::fill_n(out.data() + row * c.stride, c.stride - 2, T(1e9));  // written over
  }
  auto workspace = std::vector<T>(static_cast<std::size_t>(c.rows * c.width), T(1e9));
  attention_backward<T>(c.shape, c.query(), c.key(), c.value(),
                        {forward.context.data(), c.context_width}, forward.log_sum_exp.data(),
                        {c.probe.data(), c.context_width}, {out.data(), c.stride},
                        {out.data() + c.width, c.stride},
                        {out.data() + c.width + c.kv_width, c.stride}, workspace.data());
  return out;
}

template <typename T>
std::vector<T> probabilities_of(const AttentionCase<T>& c) {
  auto scores = zeros<T>(c.all_scores);
  attention_scores<T>(c.shape, c.query(), c.key(), scores.data());
  masked_softmax(c.shape, scores.data(), scores.data());
  return scores;
}

template <typename T>
std::vector<T> unfused(const AttentionCase<T>& c) {
  auto by_head = zeros<T>(c.rows * c.width);
  auto context = by_head;
  attention_context<T>(c.shape, probabilities_of(c).data(), c.value(), by_head.data());
  context_transpose<T>(c.shape, by_head.data(), {context.data(), c.width});
  return context;
}

template <typename T>
std::vector<T> unfused_gradient(const AttentionCase<T>& c) {
  const auto probabilities = probabilities_of(c);
  auto by_head = zeros<T>(c.rows * c.width);
  auto dq = by_head, dk = by_head, dv = by_head;
  auto ds = probabilities;
  context_transpose_backward<T>(c.shape, {c.probe.data(), c.width}, by_head.data());
  probabilities_gradient<T>(c.shape, by_head.data(), c.value(), ds.data());
  value_gradient(c.shape, probabilities.data(), by_head.data(), dv.data());
  masked_softmax_backward(c.shape, probabilities.data(), ds.data(), ds.data());
  query_gradient<T>(c.shape, ds.data(), c.key(), dq.data());
  key_gradient<T>(c.shape, ds.data(), c.query(), dk.data());
  auto out = zeros<T>(c.rows * c.stride);
  gather_qkv_gradient<T>(c.shape, dq.data(), dk.data(), dv.data(), {out.data(), c.stride},
                         {out.data() + c.width, c.stride},
                         {out.data() + c.width + c.kv_width, c.stride});
  return out;
}

inline AttentionCase<float> in_float(const AttentionCase<double>& c) {
  AttentionCase<float> out{c.shape};
  out.packed = converted<float>(c.packed);
  out.probe = converted<float>(c.probe);
  return out;
}

// batch, heads, kv_heads, sequence, head_dim, causal. Small enough for central differences.
inline constexpr AttentionShape kSmall[] = {
    {1, 1, 1, 1, 1, true}, {1, 2, 2, 3, 1, true}, {2, 2, 1, 5, 4, true}, {1, 4, 2, 4, 3, false}};
// Sequences around and across tiles of 64 queries and 128 keys.
inline constexpr AttentionShape kTiled[] = {{1, 1, 1, 127, 8, true},  {1, 2, 1, 128, 5, true},
                                            {2, 1, 1, 129, 16, true}, {1, 4, 2, 300, 8, true},
                                            {1, 2, 2, 277, 3, false}, {1, 3, 1, 256, 4, false}};
// Windows, chunks, and values of another width: inside a tile and across tiles, whose edges windows
// meet and miss.
inline constexpr AttentionShape kVariants[] = {
    {1, 2, 1, 6, 4, true, 3},          {2, 2, 2, 5, 2, true, 5},
    {1, 2, 1, 7, 3, true, 0, 3},       {1, 1, 1, 5, 2, true, 4, 1},
    {1, 2, 2, 7, 2, true, 0, 0, 3},    {1, 2, 1, 300, 6, true, 4},
    {1, 2, 1, 300, 5, true, 0, 40},    {2, 1, 1, 290, 4, true, 7, 64},
    {1, 1, 1, 400, 4, true, 0, 129},   {1, 2, 1, 300, 4, true, 0, 0, 70},
    {1, 1, 1, 257, 3, true, 2, 0, 128}};

}  // namespace stepcast::cpu
