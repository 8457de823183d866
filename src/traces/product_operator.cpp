// SPDX-License-Identifier: Apache-2.0
#include "traces/product_operator.h"

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

constexpr std::array kProducts{
    ProductOperator{"aten::mm", 0, false}, ProductOperator{"aten::addmm", 1, false},
    ProductOperator{"aten::bmm", 0, true}, ProductOperator{"aten::baddbmm", 1, true},
    ProductOperator{"aten::_scaled_mm", 0, false}};

}  // namespace

const ProductOperator* product_operator(std::string_view name) {
  const auto found =
      std::ranges::find_if(kProducts, [&](const ProductOperator& one) { return name == one.name; });
  return found == kProducts.end() ? nullptr : &*found;
}

std::optional<ProductShape> product_shape(const ProductOperator& of,
                                          const std::vector<std::vector<std::int64_t>>& dims) {
  const std::size_t rank = of.batched ? 3 : 2;
  if (dims.size() < of.left + 2) return std::nullopt;
  const auto& a = dims[of.left];
  const auto& b = dims[of.left + 1];
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2]) return std::nullopt;
  return ProductShape{of.batched ? a[0] : 1, a[rank - 2], b[rank - 1], a[rank - 1]};
}

}  // namespace stepcast
