// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/column_major.h"

#include <gtest/gtest.h>

#include "kernels/cpu/gemm.h"
#include "kernels/numbers.h"

namespace stepcast::cuda {
namespace {

// Element (row, column) of a column-major matrix on its way into a product.
double at(const ColumnMajorMatrix& matrix, const double* data, std::int64_t row,
          std::int64_t column) {
  if (matrix.transposed) std::swap(row, column);
  EXPECT_LT(row, matrix.rows);
  EXPECT_LT(column, matrix.columns);
  return data[column * matrix.leading + row];
}

// Multiplies as BLAS does, by columns: `first` is our B.
void multiply(const ColumnMajorGemm& gemm, const double* first, const double* second, double* out) {
  EXPECT_GE(gemm.first.leading, gemm.first.rows);
  EXPECT_GE(gemm.second.leading, gemm.second.rows);
  EXPECT_GE(gemm.out.leading, gemm.out.rows);
  for (std::int64_t column = 0; column < gemm.n; ++column) {
    for (std::int64_t row = 0; row < gemm.m; ++row) {
      double sum = 0;
      for (std::int64_t k = 0; k < gemm.k; ++k) {
        sum += at(gemm.first, first, row, k) * at(gemm.second, second, k, column);
      }
      out[column * gemm.out.leading + row] = sum;
    }
  }
}

TEST(ColumnMajor, ProductIsThatOfTheCpuInEveryForm) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {1, 7, 5}, {9, 1, 4}, {5, 6, 1}, {12, 9, 10}};
  for (const auto& [m, n, k] : sizes) {
    for (int form = 0; form < 4; ++form) {
      for (const std::int64_t spare : {0, 3}) {
        const bool a_t = (form & 1) != 0, b_t = (form & 2) != 0;
        const auto a = cpu::numbers((m + k) * (m + k + spare), 1);
        const auto b = cpu::numbers((n + k) * (n + k + spare), 2);
        const Matrix<const double> left{a.data(), (a_t ? m : k) + spare, a_t};
        const Matrix<const double> right{b.data(), (b_t ? k : n) + spare, b_t};
        auto expected = cpu::numbers(m * (n + spare), 3), actual = expected;
        cpu::gemm<double>(m, n, k, left, right, {expected.data(), n + spare}, false);
        const Matrix<double> out{actual.data(), n + spare};
        multiply(column_major(m, n, k, left, right, out), b.data(), a.data(), actual.data());
        cpu::expect_close(actual, expected, cpu::kSameInDouble);
      }
    }
  }
}

TEST(ColumnMajor, StrideOfASingleRowSaysNothing) {
  const std::vector<double> a = {1, 2, 3}, b = {4, 5, 6};
  const Matrix<const double> left{a.data(), 0}, right{b.data(), 0, true};
  double c = 0;
  multiply(column_major(1, 1, 3, left, right, Matrix<double>{&c, 0}), b.data(), a.data(), &c);
  EXPECT_EQ(c, 32);  // 4 + 10 + 18
}

}  // namespace
}  // namespace stepcast::cuda
