// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/assert.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// Two tiles of scores and four of rows (of 64 floats: 32 KiB each) fit a second-level cache of 256
// KiB. With fewer keys BLAS would spend more of its time on copying operands; with more queries
// more of the diagonal tiles would be masked. Among sizes of 64 to 256 these are the fastest up to
// 1024 tokens.
constexpr std::int64_t kQueries = 64;
constexpr std::int64_t kKeys = 128;

// Queries [query, query + rows) against keys [key, key + columns).
struct Tile {
  const AttentionShape& shape;
  std::int64_t query, rows;
  std::int64_t key, columns;
  bool is_first;  // that these queries see
};

// Returns the first key of the first tile that the queries from `query` on see.
std::int64_t first_tile(const AttentionShape& shape, std::int64_t query) {
  return shape.first_key(query + shape.offset()) / kKeys * kKeys;
}

// Tiles above the diagonal have no columns.
Tile tile_at(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  const std::int64_t rows = std::min(kQueries, shape.sequence - query);
  const std::int64_t keys = shape.key_rows();
  const std::int64_t end = shape.causal ? std::min(query + rows + shape.offset(), keys) : keys;
  return {shape,
          query,
          rows,
          key,
          std::clamp(end - key, std::int64_t(0), kKeys),
          key == first_tile(shape, query)};
}

// The keys of a tile that one of its queries sees: columns [begin, end).
struct Visible {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};
STEPCAST_INLINE Visible visible(const Tile& tile, std::int64_t row) {
  if (!tile.shape.causal) return {0, tile.columns};
  const std::int64_t last = tile.query + row + tile.shape.offset();
  const std::int64_t end = std::clamp(last + 1 - tile.key, std::int64_t(0), tile.columns);
  return {std::clamp(tile.shape.first_key(last) - tile.key, std::int64_t(0), end), end};
}

template <typename T>
STEPCAST_INLINE void hide(const Tile& tile, const Visible& seen, T* row) {
  std::fill(row, row + seen.begin, T(0));
  std::fill(row + seen.end, row + tile.columns, T(0));
}

template <typename T>
struct RunningSoftmax {
  std::array<T, kQueries> largest;
  std::array<T, kQueries> sum;
};

// Scores to exponentials relative to the largest of the row so far; what the row of context holds
// is brought to the new largest one (Dao 2023, algorithm 1).
template <typename T>
void update_softmax(const Tile& tile, T scale, T* scores, RunningSoftmax<T>& running,
                    const Matrix<T>& context) {
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      T* of_row = scores + row * kKeys;
      const Visible seen = visible(tile, row);
      hide(tile, seen, of_row);
      if (seen.count() == 0) continue;
      T* from = of_row + seen.begin;
      T& largest = running.largest[static_cast<std::size_t>(row)];
      T& sum = running.sum[static_cast<std::size_t>(row)];
      const T next = std::max(largest, largest_of(from, seen.count()));
      const T shrink = tile.is_first ? T(0) : std::exp((largest - next) * scale);
      largest = next;
      sum = sum * shrink + exponentials(from, from, seen.count(), scale, next * scale);
      if (tile.is_first || shrink == T(1)) continue;
      T* out = context.data + row * context.stride;
      for_packs<T>(tile.shape.value_width(), [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
        store<T>(load(out + i, lanes) * shrink, out + i, lanes);
      });
    }
  });
}

template <typename T>
void divide_by_sums(std::int64_t rows, T scale, const RunningSoftmax<T>& running,
                    const Matrix<T>& context, std::int64_t width, T* log_sum_exp) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T sum = running.sum[static_cast<std::size_t>(row)];
    log_sum_exp[row] = running.largest[static_cast<std::size_t>(row)] * scale + std::log(sum);
    const T inverse = 1 / sum;
    T* out = context.data + row * context.stride;
    for_packs<T>(width, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
      store<T>(load(out + i, lanes) * inverse, out + i, lanes);
    });
  }
}

// One head of one sequence.
template <typename T>
void attend(const AttentionShape& shape, const Matrix<const T>& query, const Matrix<const T>& key,
            const Matrix<const T>& value, const Matrix<T>& context, T* log_sum_exp,
            std::vector<T>& scores) {
  const T scale = score_scale<T>(shape);
  const std::int64_t d = shape.head_dim, width = shape.value_width();
  for (std::int64_t q = 0; q < shape.sequence; q += kQueries) {
    RunningSoftmax<T> running;
    running.largest.fill(kNothing<T>);
    running.sum.fill(T(0));
    const Matrix<T> out = rows_from(context, q);
    for (std::int64_t k = first_tile(shape, q); k < shape.key_rows(); k += kKeys) {
      const Tile tile = tile_at(shape, q, k);
      if (tile.columns == 0) break;
      gemm<T>(tile.rows, tile.columns, d, rows_from(query, q), transposed<T>(rows_from(key, k)),
              {scores.data(), kKeys}, false);
      update_softmax(tile, scale, scores.data(), running, out);
      gemm<T>(tile.rows, width, tile.columns, {scores.data(), kKeys}, rows_from(value, k), out,
              !tile.is_first);
    }
    divide_by_sums(std::min(kQueries, shape.sequence - q), scale, running, out, width,
                   log_sum_exp + q);
  }
}

// scores -> probabilities; probability_gradient -> gradient of the raw scores.
template <typename T>
void tile_backward(const Tile& tile, T scale, const T* log_sum_exp, const T* products, T* scores,
                   T* gradient) {
  run_widest([&]() STEPCAST_BODY {
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      T* p = scores + row * kKeys;
      T* ds = gradient + row * kKeys;
      const Visible seen = visible(tile, row);
      for_packs<T>(seen.count(), [&](std::int64_t at, std::int64_t lanes) STEPCAST_BODY {
        const std::int64_t i = seen.begin + at;
        const Pack<T> chance = exponential<T>(load(p + i, lanes) * scale - log_sum_exp[row]);
        store<T>(chance, p + i, lanes);
        store<T>(chance * (load(ds + i, lanes) - products[row]) * scale, ds + i, lanes);
      });
      hide(tile, seen, p);
      hide(tile, seen, ds);
    }
  });
}

// Computes context . context_gradient for each query, which equals the sum over its keys of
// probability times gradient of the probability (Dao 2023, section 2.3.2).
template <typename T>
void row_products(const AttentionShape& shape, const Matrix<const T>& a, const Matrix<const T>& b,
                  T* products) {
  for (std::int64_t row = 0; row < shape.sequence; ++row) {
    Pack<T> sum{};
    for_packs<T>(shape.value_width(), [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
      sum += load(a.data + row * a.stride + i, lanes) * load(b.data + row * b.stride + i, lanes);
    });
    products[row] = sum_of_lanes<T>(sum);
  }
}

template <typename T>
void fill_rows(const Matrix<T>& matrix, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::fill_n(matrix.data + row * matrix.stride, columns, T(0));
  }
}

template <typename T>
struct HeadBackward {
  Matrix<const T> query, key, value, context_gradient;
  const T* log_sum_exp;
  const T* products;
  Matrix<T> query_gradient, key_gradient, value_gradient;
};

// All queries of one head against one tile of keys: adds to the three gradients; the first tile
// of keys that a query sees writes that of the query.
template <typename T>
void keys_backward(const AttentionShape& shape, const HeadBackward<T>& head, std::int64_t k,
                   std::vector<T>& scores, std::vector<T>& gradient) {
  const T scale = score_scale<T>(shape);
  const std::int64_t d = shape.head_dim, width = shape.value_width();
  const Matrix<const T> key = rows_from(head.key, k);
  const Matrix<const T> value = rows_from(head.value, k);
  const Matrix<const T> p{scores.data(), kKeys};
  const Matrix<const T> ds{gradient.data(), kKeys};
  const std::int64_t seen_from = shape.causal ? std::max<std::int64_t>(0, k - shape.offset()) : 0;
  for (std::int64_t q = seen_from / kQueries * kQueries; q < shape.sequence; q += kQueries) {
    if (k < first_tile(shape, q)) break;  // nor do later queries see so far back
    const Tile tile = tile_at(shape, q, k);
    const Matrix<const T> query = rows_from(head.query, q);
    const Matrix<const T> up = rows_from(head.context_gradient, q);
    gemm<T>(tile.rows, tile.columns, d, query, transposed<T>(key), {scores.data(), kKeys}, false);
    gemm<T>(tile.rows, tile.columns, width, up, transposed<T>(value), {gradient.data(), kKeys},
            false);
    tile_backward(tile, scale, head.log_sum_exp + q, head.products + q, scores.data(),
                  gradient.data());
    gemm<T>(tile.columns, width, tile.rows, transposed<T>(p), up, rows_from(head.value_gradient, k),
            true);
    gemm<T>(tile.columns, d, tile.rows, transposed<T>(ds), query, rows_from(head.key_gradient, k),
            true);
    gemm<T>(tile.rows, d, tile.columns, ds, key, rows_from(head.query_gradient, q), !tile.is_first);
  }
}

// The query heads that read one key-value head.
template <typename T>
void group_backward(const AttentionShape& shape, std::vector<HeadBackward<T>>& group) {
  std::vector<T> scores(static_cast<std::size_t>(kQueries * kKeys));
  std::vector<T> gradient(scores.size());
  for (std::int64_t k = 0; k < shape.key_rows(); k += kKeys) {
    const std::int64_t keys = std::min(kKeys, shape.key_rows() - k);
    fill_rows(rows_from(group.front().key_gradient, k), keys, shape.head_dim);
    fill_rows(rows_from(group.front().value_gradient, k), keys, shape.value_width());
    for (const HeadBackward<T>& head : group) keys_backward(shape, head, k, scores, gradient);
  }
}

void check(const AttentionShape& shape) {
  STEPCAST_ASSERT(shape.heads % shape.kv_heads == 0, "groups of as many query heads each");
  STEPCAST_ASSERT(shape.causal || shape.window + shape.chunk == 0, "windows end at their query");
  STEPCAST_ASSERT(shape.offset() >= 0, "every query of a causal mask sees a key");
}

}  // namespace

template <typename T>
void attention(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
               Heads<const T> value, Heads<T> context, T* log_sum_exp) {
  check(shape);
  const AttentionShape of_keys = shape.of_keys();
  std::vector<T> scores(static_cast<std::size_t>(kQueries * kKeys));
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      const std::int64_t kv = kv_head_of(shape, h);
      attend(shape, head_of(shape, query, b, h), head_of(of_keys, key, b, kv),
             head_of(of_keys, value, b, kv, shape.value_width()),
             head_of(shape, context, b, h, shape.value_width()), log_sum_exp, scores);
      log_sum_exp += shape.sequence;
    }
  }
}

template <typename T>
void attention_backward(const AttentionShape& shape, Heads<const T> query, Heads<const T> key,
                        Heads<const T> value, Heads<const T> context, const T* log_sum_exp,
                        Heads<const T> context_gradient, Heads<T> query_gradient,
                        Heads<T> key_gradient, Heads<T> value_gradient, T* query_accumulator) {
  check(shape);
  if (shape.sequence == 0) return;
  const AttentionShape of_keys = shape.of_keys();
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_dim, width = shape.value_width();
  const std::int64_t group_size = shape.heads / shape.kv_heads;
  std::vector<T> products(static_cast<std::size_t>(group_size * s));
  std::vector<HeadBackward<T>> group(static_cast<std::size_t>(group_size));
  for (std::int64_t i = 0; i < shape.batch * shape.kv_heads; ++i) {
    const std::int64_t b = i / shape.kv_heads;
    const std::int64_t kv = i % shape.kv_heads;
    for (std::int64_t member = 0; member < group_size; ++member) {
      const std::int64_t h = kv * group_size + member;
      const std::int64_t index = b * shape.heads + h;
      T* of_head = products.data() + member * s;
      const Matrix<const T> up = head_of(shape, context_gradient, b, h, width);
      row_products(shape, head_of(shape, context, b, h, width), up, of_head);
      group[static_cast<std::size_t>(member)] = {head_of(shape, query, b, h),
                                                 head_of(of_keys, key, b, kv),
                                                 head_of(of_keys, value, b, kv, width),
                                                 up,
                                                 log_sum_exp + index * s,
                                                 of_head,
                                                 {query_accumulator + index * s * d, d},
                                                 head_of(of_keys, key_gradient, b, kv),
                                                 head_of(of_keys, value_gradient, b, kv, width)};
    }
    group_backward(shape, group);
  }
  context_transpose(shape, query_accumulator, query_gradient);
}

#define STEPCAST_INSTANTIATE(T)                                                                  \
  template void attention(const AttentionShape&, Heads<const T>, Heads<const T>, Heads<const T>, \
                          Heads<T>, T*);                                                         \
  template void attention_backward(const AttentionShape&, Heads<const T>, Heads<const T>,        \
                                   Heads<const T>, Heads<const T>, const T*, Heads<const T>,     \
                                   Heads<T>, Heads<T>, Heads<T>, T*);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
