// SPDX-License-Identifier: Apache-2.0
#include "execute/fp8_matrices.h"

#include <algorithm>

#include "core/assert.h"

namespace stepcast {

Fp8Matrices::Fp8Matrices(std::vector<Matrix> matrices, bool turns, Memory& memory)
    : matrices_(std::move(matrices)), turns_(turns), device_(memory.device) {
  std::ranges::sort(matrices_, {}, [](const Matrix& matrix) { return matrix.range.begin; });
  std::int64_t elements = 0;
  for (const Matrix& matrix : matrices_) {
    begin_.push_back(elements);
    elements += matrix.range.size();
  }
  const auto copy = [&] {
    return memory.make(MemoryCategory::kParameters, elements, DataType::kFp8);
  };
  by_rows_ = copy();
  if (turns_) by_columns_ = copy();
  figures_ =
      memory.make_uncounted(2 * static_cast<std::int64_t>(matrices_.size()), DataType::kFp32);
}

void Fp8Matrices::find_largest(const Parameters& parameters) {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const ElementRange range = matrices_[i].range;
    kernels().find_largest(
        {.x = parameters(range.begin), .count = range.size(), .largest = largest(i)});
  }
}

void Fp8Matrices::cast(const Parameters& parameters) {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const Matrix& matrix = matrices_[i];
    kernels().cast_to_fp8({.x = parameters(matrix.range.begin),
                           .rows = matrix.rows,
                           .columns = matrix.columns,
                           .format = Fp8Format::kE4m3,
                           .largest = largest(i),
                           .factor = factor(i),
                           .by_rows = by_rows_->array().from(begin_[i]),
                           .by_columns = turns_ ? by_columns_->array().from(begin_[i]) : Array{}});
  }
}

ProductOperand Fp8Matrices::of(ElementRange range, bool backward) const {
  const auto found = std::ranges::lower_bound(
      matrices_, range.begin, {}, [](const Matrix& matrix) { return matrix.range.begin; });
  STEPCAST_ASSERT(found != matrices_.end() && found->range.begin == range.begin,
                  "a product in fp8 has a matrix in fp8");
  const auto i = static_cast<std::size_t>(found - matrices_.begin());
  const Tensor& copy = backward && turns_ ? by_columns_ : by_rows_;
  return {copy->array().from(begin_[i]), {Fp8Format::kE4m3, factor(i)}};
}

}  // namespace stepcast
