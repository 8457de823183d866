// SPDX-License-Identifier: Apache-2.0
#include "program/fp8_weights.h"

#include <algorithm>

namespace stepcast {
namespace {

bool gathers_fp8(const Shape& shape) { return shape.fp8_params && !shape.fp8.recipe->gathers_wide; }

// The trained elements of a block that the group reduces, and that products read in fp8.
std::int64_t elements_in_fp8(const Block& block, AxisGroup group) {
  std::int64_t sum = 0;
  for (const Parameter& weight : block.weights) {
    const bool trained = weight.storage == WeightStorage::kTrained && !weight.borrowed;
    if (trained && weight.in_fp8 && weight.replicas == group) sum += weight.elements();
  }
  return sum;
}

}  // namespace

ByteCount saved_by_fp8(const RoleBuilder& builder, ElementRange range) {
  if (!gathers_fp8(builder.shape())) return 0;
  const AxisGroup group = builder.role().group_of(range);
  std::int64_t in_fp8 = 0;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(builder.chunks()); ++c) {
    for (std::int32_t b = 0; b < builder.blocks(c); ++b) {
      const ElementRange block = builder.range(c, b, group);
      const std::int64_t common =
          std::min(block.end, range.end) - std::max(block.begin, range.begin);
      if (common <= 0) continue;
      // A bucket that ends inside a block takes its part of the block's matrices.
      const double part = static_cast<double>(common) / static_cast<double>(block.size());
      const auto matrices = static_cast<double>(elements_in_fp8(builder.block(c, b), group));
      in_fp8 += static_cast<std::int64_t>(part * matrices);
    }
  }
  return in_fp8 * (builder.shape().element - 1);
}

void cast_weights(BlockBuilder& builder, const Scenario& scenario, std::int64_t elements) {
  const Shape& shape = builder.shape();
  if (!shape.fp8 || elements == 0 || builder.mode() == GradientMode::kUnit) return;
  const auto element = static_cast<double>(shape.element);
  if (!gathers_fp8(shape)) {
    if (shape.fp8.recipe->finds_scale) {
      builder.add("find_scales",
                  Cast{CastSubject::kScale, false, scenario.training.wide(), DataType::kFp32,
                       builder.size(elements, 0, element)},
                  {}, {});
    }
    const auto copies = static_cast<double>(shape.fp8.weight_bytes(elements));
    builder.add("cast_weights",
                Cast{CastSubject::kWeight,
                     false,
                     scenario.training.wide(),
                     shape.fp8.type,
                     {elements, 0, element * static_cast<double>(elements) + copies}},
                {}, {});
  } else if (shape.fp8.has_two_copies()) {
    builder.add("transpose_weights",
                Cast{CastSubject::kWeight, false, shape.fp8.type, shape.fp8.type,
                     builder.size(elements, 0, 2)},
                {}, {});
  }
}

}  // namespace stepcast
