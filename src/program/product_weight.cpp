// SPDX-License-Identifier: Apache-2.0
#include "program/product_weight.h"

#include "program/product_operands.h"

namespace stepcast {
namespace {

// bitsandbytes dequantises the scales, then the weights, into a tensor for the product.
BufferId expand(BlockBuilder& builder, ParameterId matrix, std::int64_t elements) {
  const Shape& shape = builder.shape();
  const BufferId dense =
      builder.buffer("expanded_weight", elements, shape.type, MemoryCategory::kWorkspace);
  const double bytes = kFourBitBytes + static_cast<double>(shape.element);
  builder.add("expand_weight",
              Cast{CastSubject::kFourBitWeight, false, DataType::kInt8, shape.type,
                   builder.size(elements, 0, bytes, 2)},
              {}, {dense});
  builder.uses({matrix});
  return dense;
}

// Casts a matrix of a gathered unit for each product: one gathered in 16 bits to both copies, one
// gathered in fp8 to the copy by columns alone. Units that are not gathered keep copies, made once
// a step.
BufferId cast(BlockBuilder& builder, ParameterId matrix, std::int64_t elements, bool backward) {
  const Shape& shape = builder.shape();
  const Fp8& fp8 = builder.fp8();
  const bool gathered_so = shape.fp8_params && !fp8.recipe->gathers_wide;
  if (gathered_so && !(backward && fp8.has_two_copies())) return {};
  const BufferId copy =
      builder.buffer("weight_fp8", fp8.copy_bytes(elements), fp8.type, MemoryCategory::kWorkspace);
  const DataType from = gathered_so ? fp8.type : shape.type;
  const double read = width_of(from);
  if (fp8.recipe->finds_scale && !gathered_so) {
    builder.add("find_scale",
                Cast{CastSubject::kScale, backward, from, DataType::kFp32,
                     builder.size(elements, 0, read, 2)},
                {}, {});
    builder.uses({matrix});
  }
  builder.add(
      "cast_weight",
      Cast{CastSubject::kWeight, backward, from, fp8.type,
           builder.size(elements, 0, read + width_of(fp8.type) + fp8.recipe->weight_scale_bytes)},
      {}, {copy});
  builder.uses({matrix});
  return copy;
}

}  // namespace

void store_matrix(const BlockBuilder& builder, Parameter& matrix) {
  const Shape& shape = builder.shape();
  if (shape.mode == TrainingMode::kQlora) matrix.storage = WeightStorage::kFourBit;
  matrix.in_fp8 = operand_form(builder).is_fp8();
  matrix.in_fp4 = matrix.in_fp8 && builder.fp8().type == DataType::kFp4;
  if (matrix.in_fp8 && shape.mode == TrainingMode::kLora) matrix.storage = WeightStorage::kFp8;
}

BufferId matrix_for_product(BlockBuilder& builder, ParameterId matrix, std::int64_t elements,
                            bool backward) {
  if (builder.shape().mode == TrainingMode::kQlora) return expand(builder, matrix, elements);
  const bool casts = operand_form(builder).is_fp8() && builder.trains(matrix) &&
                     builder.mode() == GradientMode::kUnit;
  return casts ? cast(builder, matrix, elements, backward) : BufferId{};
}

}  // namespace stepcast
