// SPDX-License-Identifier: Apache-2.0
#include "program/fp8_weights.h"

#include <algorithm>

#include "layout/scenario.h"

namespace stepcast {
namespace {

bool gathers_narrow(const Shape& shape, const Fp8& fp8) {
  return shape.fp8_params && !fp8.recipe->gathers_wide;
}

// Bytes that are not gathered of a block's trained elements that the group reduces.
double saved_in(const Block& block, AxisGroup group, const Shape& shape) {
  double sum = 0;
  for (const Parameter& weight : block.weights) {
    const bool trained = weight.storage == WeightStorage::kTrained && !weight.borrowed;
    if (!trained || !weight.in_fp8 || weight.replicas != group) continue;
    const Fp8& fp8 = weight.in_fp4 ? shape.fp8 : shape.attention_fp8;
    if (!gathers_narrow(shape, fp8)) continue;
    sum += static_cast<double>(weight.elements()) *
           (static_cast<double>(shape.element) - width_of(fp8.type));
  }
  return sum;
}

}  // namespace

ByteCount saved_by_fp8(const RoleBuilder& builder, ElementRange range) {
  if (!builder.shape().fp8_params) return 0;
  const AxisGroup group = builder.role().group_of(range);
  std::int64_t saved = 0;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(builder.chunks()); ++c) {
    for (std::int32_t b = 0; b < builder.blocks(c); ++b) {
      const ElementRange block = builder.range(c, b, group);
      const std::int64_t common =
          std::min(block.end, range.end) - std::max(block.begin, range.begin);
      if (common <= 0) continue;
      // A bucket that ends inside a block takes its part of the block's matrices.
      const double part = static_cast<double>(common) / static_cast<double>(block.size());
      saved +=
          static_cast<std::int64_t>(part * saved_in(builder.block(c, b), group, builder.shape()));
    }
  }
  return saved;
}

void cast_weights(BlockBuilder& builder, const Scenario& scenario, const Fp8& fp8,
                  std::int64_t elements) {
  const Shape& shape = builder.shape();
  if (!fp8 || elements == 0 || builder.mode() == GradientMode::kUnit) return;
  const auto element = static_cast<double>(shape.element);
  if (!gathers_narrow(shape, fp8)) {
    if (fp8.recipe->finds_scale) {
      builder.add("find_scales",
                  Cast{CastSubject::kScale, false, scenario.training.wide(), DataType::kFp32,
                       builder.size(elements, 0, element)},
                  {}, {});
    }
    const auto copies = static_cast<double>(fp8.weight_bytes(elements));
    builder.add("cast_weights",
                Cast{CastSubject::kWeight,
                     false,
                     scenario.training.wide(),
                     fp8.type,
                     {elements, 0, element * static_cast<double>(elements) + copies}},
                {}, {});
  } else if (fp8.has_two_copies()) {
    builder.add("transpose_weights",
                Cast{CastSubject::kWeight, false, fp8.type, fp8.type,
                     builder.size(elements, 0, 2 * width_of(fp8.type))},
                {}, {});
  }
}

}  // namespace stepcast
