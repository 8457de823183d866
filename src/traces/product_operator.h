// SPDX-License-Identifier: Apache-2.0
// PyTorch's operators that multiply matrices, and the shapes of their products.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stepcast {

struct ProductOperator {
  const char* name;
  std::size_t left;  // place of the left operand among the inputs
  bool batched;
};
const ProductOperator* product_operator(std::string_view name);  // null: another one

// m x n x k, `batch` times.
struct ProductShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool operator==(const ProductShape&) const = default;
};

// Nothing where the dimensions are not those of a product.
std::optional<ProductShape> product_shape(const ProductOperator& of,
                                          const std::vector<std::vector<std::int64_t>>& dims);

}  // namespace stepcast
