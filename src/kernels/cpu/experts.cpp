// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/assert.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widest.h"

namespace stepcast::cpu {
namespace {

// Calls visit(token, expert, row) for every row that choose_rows() makes, and returns where rows
// end.
template <typename Visit>
std::int64_t for_rows(const RouterShape& shape, const std::int8_t* chosen, const Visit& visit) {
  std::int64_t row = 0;
  for (std::int64_t expert = 0; expert < shape.experts; ++expert) {
    const std::int64_t begin = row;
    for (std::int64_t token = 0; token < shape.tokens; ++token) {
      if (chosen[token * shape.experts + expert] == 0) continue;
      if (shape.capacity > 0 && row - begin == shape.capacity) break;
      visit(token, expert, row++);
    }
    if (shape.capacity > 0) row = begin + shape.capacity;
  }
  return row;
}

// The largest first; of equal ones the first.
template <typename T>
void choose_largest(const RouterShape& shape, const T* logits, std::vector<std::int64_t>& order,
                    std::int8_t* chosen) {
  std::iota(order.begin(), order.end(), std::int64_t(0));
  const auto before = [&](std::int64_t a, std::int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + shape.top_k, order.end(), before);
  for (std::int64_t i = 0; i < shape.top_k; ++i) chosen[order[static_cast<std::size_t>(i)]] = 1;
}

}  // namespace

template <typename T>
void route(const RouterShape& shape, const T* logits, const std::int64_t* choice, T* probabilities,
           std::int8_t* chosen, const T* bias) {
  STEPCAST_ASSERT(shape.top_k <= shape.experts, "a token goes to different experts");
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape.experts));
  std::vector<T> scores(order.size());
  std::fill_n(chosen, shape.tokens * shape.experts, std::int8_t(0));
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const T* of_token = logits + token * shape.experts;
    T* out = probabilities + token * shape.experts;
    std::int8_t* of_map = chosen + token * shape.experts;
    run_widest([&]() STEPCAST_BODY {
      const T largest = largest_of(of_token, shape.experts);
      const T sum = exponentials(of_token, out, shape.experts, T(1), largest);
      for_packs<T>(shape.experts, [&](std::int64_t i, std::int64_t lanes) STEPCAST_BODY {
        store<T>(load(out + i, lanes) / sum, out + i, lanes);
      });
    });
    if (choice != nullptr) {
      for (std::int64_t i = 0; i < shape.top_k; ++i) of_map[choice[token * shape.top_k + i]] = 1;
    } else if (bias != nullptr) {
      std::transform(out, out + shape.experts, bias, scores.begin(), std::plus<T>());
      choose_largest(shape, scores.data(), order, of_map);
    } else {
      choose_largest(shape, of_token, order, of_map);
    }
  }
}

// With p the softmax and g the gradient at it, 0 for experts that were not chosen:
// p_i (g_i - sum_j p_j g_j).
template <typename T>
void route_backward(const RouterShape& shape, const T* probabilities, const std::int8_t* chosen,
                    const T* weight_gradient, T* logits_gradient) {
  std::fill_n(logits_gradient, shape.tokens * shape.experts, T(0));
  for_rows(shape, chosen, [&](std::int64_t token, std::int64_t expert, std::int64_t row) {
    logits_gradient[token * shape.experts + expert] = weight_gradient[row];
  });
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const T* p = probabilities + token * shape.experts;
    T* g = logits_gradient + token * shape.experts;
    T mean = 0;
    for (std::int64_t i = 0; i < shape.experts; ++i) mean += p[i] * g[i];
    for (std::int64_t i = 0; i < shape.experts; ++i) g[i] = p[i] * (g[i] - mean);
  }
}

template <typename T>
void choose_rows(const RouterShape& shape, const T* probabilities, const std::int8_t* chosen,
                 std::int64_t* token_of_row, T* weights) {
  if (shape.capacity > 0) {
    std::fill_n(token_of_row, shape.experts * shape.capacity, std::int64_t(-1));
    std::fill_n(weights, shape.experts * shape.capacity, T(0));
  }
  for_rows(shape, chosen, [&](std::int64_t token, std::int64_t expert, std::int64_t row) {
    token_of_row[row] = token;
    weights[row] = probabilities[token * shape.experts + expert];
  });
}

void count_rows(const RouterShape& shape, const std::int8_t* chosen, std::int64_t* counts) {
  std::fill_n(counts, shape.experts, shape.capacity);
  if (shape.capacity > 0) return;
  for_rows(shape, chosen,
           [&](std::int64_t, std::int64_t expert, std::int64_t) { ++counts[expert]; });
}

template <typename T>
void take_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
               std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, to += width) {
    if (index[row] < 0) {
      std::fill_n(to, width, T(0));
    } else {
      std::copy_n(from + index[row] * width, width, to);
    }
  }
}

template <typename T>
void put_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * width, width, to + index[row] * width);
  }
}

template <typename T>
void add_rows(const T* from, const std::int64_t* index, T* to, std::int64_t rows,
              std::int64_t targets, std::int64_t width) {
  std::fill_n(to, targets * width, T(0));
  for (std::int64_t row = 0; row < rows; ++row) {
    if (index[row] >= 0) accumulate(from + row * width, to + index[row] * width, width);
  }
}

template <typename T>
void expert_activation(ActivationKind kind, const T* up, const T* weights, T* out,
                       std::int64_t rows, std::int64_t width) {
  activation<T>(kind, up, nullptr, out, rows, width);
  for (std::int64_t row = 0; row < rows; ++row) scale(out + row * width, weights[row], width);
}

template <typename T>
void expert_activation_backward(ActivationKind kind, const T* up, const T* weights,
                                const T* gradient, T* up_gradient, T* weight_gradient,
                                std::int64_t rows, std::int64_t width) {
  const std::int64_t up_width = kind == ActivationKind::kSwiglu ? 2 * width : width;
  std::vector<T> plain(static_cast<std::size_t>(width)), weighed(plain.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* of_row = up + row * up_width;
    const T* dy = gradient + row * width;
    activation<T>(kind, of_row, nullptr, plain.data(), 1, width);
    T product = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      product += dy[i] * plain[i];
      weighed[i] = dy[i] * weights[row];
    }
    weight_gradient[row] = product;
    activation_backward<T>(kind, of_row, nullptr, weighed.data(), up_gradient + row * up_width, 1,
                           width);
  }
}

#define STEPCAST_INSTANTIATE(T)                                                                   \
  template void route(const RouterShape&, const T*, const std::int64_t*, T*, std::int8_t*,        \
                      const T*);                                                                  \
  template void route_backward(const RouterShape&, const T*, const std::int8_t*, const T*, T*);   \
  template void choose_rows(const RouterShape&, const T*, const std::int8_t*, std::int64_t*, T*); \
  template void take_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t);         \
  template void put_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t);          \
  template void add_rows(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t,           \
                         std::int64_t);                                                           \
  template void expert_activation(ActivationKind, const T*, const T*, T*, std::int64_t,           \
                                  std::int64_t);                                                  \
  template void expert_activation_backward(ActivationKind, const T*, const T*, const T*, T*, T*,  \
                                           std::int64_t, std::int64_t);
STEPCAST_INSTANTIATE(float)
STEPCAST_INSTANTIATE(double)

}  // namespace stepcast::cpu
