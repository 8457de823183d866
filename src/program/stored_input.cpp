// SPDX-License-Identifier: Apache-2.0
#include "program/stored_input.h"

namespace stepcast {
namespace {

Cast cast_of(bool backward, DataType from, DataType to, std::int64_t elements) {
  const auto bytes = static_cast<double>(elements * (size_of(from) + size_of(to)));
  return {CastSubject::kStored, backward, from, to, {elements, 0, bytes, 1}};
}

}  // namespace

BufferId store_in_fp8(BlockBuilder& builder, BufferId wide, std::int64_t elements) {
  const BufferId stored = builder.buffer("activation_input_fp8", elements, DataType::kFp8);
  builder.add("store_activation_input",
              cast_of(false, builder.shape().type, DataType::kFp8, elements), {wide}, {stored});
  return stored;
}

BufferId restore_from_fp8(BlockBuilder& builder, BufferId stored, std::int64_t elements) {
  const BufferId wide = builder.activation("activation_input", elements);
  builder.add("restore_activation_input",
              cast_of(true, DataType::kFp8, builder.shape().type, elements), {stored}, {wide});
  return wide;
}

}  // namespace stepcast
