// SPDX-License-Identifier: Apache-2.0
// The copies in fp8 of a rank's matrices, where whole parameters stay: products read them, and each
// step begins with making them (docs/fp8.md).
#pragma once

#include <functional>
#include <vector>

#include "execute/storage.h"
#include "program/element_range.h"

namespace stepcast {

class Fp8Matrices {
 public:
  struct Matrix {
    ElementRange range;  // among the role's flat elements
    std::int64_t rows, columns;
  };
  // `turns`: there is a copy by columns too, for the product backward.
  Fp8Matrices(std::vector<Matrix> matrices, bool turns, Memory& memory);

  using Parameters = std::function<Array(std::int64_t element)>;
  void find_largest(const Parameters& parameters);
  void cast(const Parameters& parameters);
  ProductOperand of(ElementRange range, bool backward) const;

 private:
  Kernels& kernels() { return device_.kernels(); }
  float* largest(std::size_t i) const { return figures_->array().as<float>() + i; }
  float* factor(std::size_t i) const { return largest(matrices_.size() + i); }

  std::vector<Matrix> matrices_;     // by range
  std::vector<std::int64_t> begin_;  // of each one's copy
  bool turns_;
  Device& device_;
  Tensor by_rows_, by_columns_, figures_;
};

}  // namespace stepcast
