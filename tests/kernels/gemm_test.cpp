// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

struct Product {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed, accumulate;
  std::int64_t spare = 3;  // elements between the rows

  std::int64_t a_stride() const { return (a_transposed ? m : k) + spare; }
  std::int64_t b_stride() const { return (b_transposed ? k : n) + spare; }
  std::int64_t c_stride() const { return n + spare; }
};

template <typename T>
std::vector<T> naive(const Product& p, const std::vector<T>& a, const std::vector<T>& b,
                     std::vector<T> c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      T& out = c[static_cast<std::size_t>(i * p.c_stride() + j)];
      double sum = p.accumulate ? static_cast<double>(out) : 0.0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const auto at =
            static_cast<std::size_t>(p.a_transposed ? l * p.a_stride() + i : i * p.a_stride() + l);
        const auto bt =
            static_cast<std::size_t>(p.b_transposed ? j * p.b_stride() + l : l * p.b_stride() + j);
        sum += static_cast<double>(a[at]) * static_cast<double>(b[bt]);
      }
      out = static_cast<T>(sum);
    }
  }
  return c;
}

template <typename T>
void expect_naive(const Product& p, double tolerance) {
  const auto a = numbers<T>((p.m + p.k) * (p.a_stride() + 1), 1);
  const auto b = numbers<T>((p.n + p.k) * (p.b_stride() + 1), 2);
  auto c = numbers<T>((p.m + 1) * p.c_stride(), 3);
  const auto expected = naive(p, a, b, c);  // what lies between the rows stays as it is
  gemm<T>(p.m, p.n, p.k, {a.data(), p.a_stride(), p.a_transposed},
          {b.data(), p.b_stride(), p.b_transposed}, {c.data(), p.c_stride()}, p.accumulate);
  expect_close(c, expected, tolerance);
}

TEST(Gemm, EqualsThreeLoopsInEveryFormAndManySizes) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {1, 7, 5}, {9, 1, 4}, {5, 6, 1}, {33, 17, 65}};
  for (const auto& size : sizes) {
    for (int form = 0; form < 8; ++form) {
      const Product p{size[0], size[1], size[2], (form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
      expect_naive<double>(p, 1e-14);
      expect_naive<float>(p, 1e-6);
    }
  }
}

TEST(Gemm, OfNothingSummedIsZeroOrWhatWasThere) {
  std::vector<double> c = {1, 2, 3, 4};
  gemm<double>(2, 1, 0, {nullptr, 0}, {nullptr, 1}, {c.data(), 2}, true);
  EXPECT_EQ(c, (std::vector<double>{1, 2, 3, 4}));
  gemm<double>(2, 1, 0, {nullptr, 0}, {nullptr, 1}, {c.data(), 2}, false);
  EXPECT_EQ(c, (std::vector<double>{0, 2, 0, 4}));
  gemm<double>(0, 1, 3, {nullptr, 3}, {c.data(), 1}, {nullptr, 1}, false);
  gemm<double>(1, 0, 3, {c.data(), 3}, {nullptr, 0}, {nullptr, 0}, false);
  EXPECT_EQ(c, (std::vector<double>{0, 2, 0, 4}));
}

TEST(Gemm, WritesOverWhatWasNotANumber) {
  const std::vector<float> a = {2};
  std::vector<float> c = {std::numeric_limits<float>::quiet_NaN()};
  gemm<float>(1, 1, 1, {a.data(), 1}, {a.data(), 1}, {c.data(), 1}, false);
  EXPECT_EQ(c.front(), 4.0F);
}

TEST(Gemm, StrideOfASingleRowSaysNothing) {
  const std::vector<double> a = {1, 2, 3};
  const std::vector<double> b = {4, 5, 6};
  double c = 0;
  gemm<double>(1, 1, 3, {a.data(), 0}, {b.data(), 0, true}, {&c, 0}, false);
  EXPECT_EQ(c, 32);  // 4 + 10 + 18
}

TEST(Bias, IsAddedToEveryRow) {
  for (const std::int64_t columns : {1, 8, 13}) {
    auto data = numbers<float>(3 * columns, 1);
    const auto bias = numbers<float>(columns, 2);
    auto expected = data;
    for (std::size_t i = 0; i < data.size(); ++i) expected[i] += bias[i % bias.size()];
    add_bias(data.data(), bias.data(), 3, columns);
    EXPECT_EQ(data, expected);
  }
}

TEST(Bias, GradientIsTheSumOfTheRows) {
  for (const std::int64_t rows : {0, 1, 4, 7, 19}) {
    for (const std::int64_t columns : {1, 4, 11}) {
      const auto data = numbers(rows * columns, 1);
      const auto before = numbers(columns, 2);
      auto sum = zeros<double>(columns);
      for (std::size_t i = 0; i < data.size(); ++i) sum[i % sum.size()] += data[i];
      auto gradient = before;
      bias_gradient(data.data(), gradient.data(), rows, columns, false);
      expect_close(gradient, sum, kSameInDouble);
      gradient = before;
      bias_gradient(data.data(), gradient.data(), rows, columns, true);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += before[i];
      expect_close(gradient, sum, kSameInDouble);
    }
  }
}

}  // namespace
}  // namespace stepcast::cpu
