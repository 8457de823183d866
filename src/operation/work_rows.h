// SPDX-License-Identifier: Apache-2.0
// The rows of works of operations (core/row_types.h): every key has to be there, but for counts
// that most do not have.
#pragma once

#include <concepts>

#include "core/row_types.h"
#include "operation/optional_count.h"

namespace stepcast {

template <>
inline constexpr RowType row_detail::kType<OptionalCount> = [] {
  RowType out;
  out.kind = RowKind::kOptional;
  out.element = &kType<std::int64_t>;
  out.held = [](const void* count) -> const void* {
    const auto& value = as<OptionalCount>(count).value;
    return value == 0 ? nullptr : &value;
  };
  out.put = [](void* count, const RowFill& fill) { return fill(&as<OptionalCount>(count).value); };
  return out;
}();

template <auto member>
constexpr Row work_row(const char* key) {
  constexpr double kMostBytes = 1e18;
  Row out = row<member>(key);
  if (out.type->kind == RowKind::kNumber) out = out.within(0, kMostBytes);
  return out.type->kind == RowKind::kOptional ? out : out.required();
}

}  // namespace stepcast
