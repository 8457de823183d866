// SPDX-License-Identifier: Apache-2.0
#include "program/optimizer.h"

#include "memory/states.h"
#include "program/block_builder.h"

namespace stepcast {
namespace {

Block one_list(const char* name, const Scenario& scenario,
               void (*write)(BlockBuilder&, const Scenario&, const Role&), const Role& role) {
  const Shape shape(scenario);
  Block block;
  block.name = name;
  BlockBuilder builder(shape, gradient_mode(scenario), block);
  builder.into(block.forward, Phase::kOptimizer);
  write(builder, scenario, role);
  return block;
}

// Elements that the optimizer of a rank updates: its shards of all stretches.
std::int64_t owned_elements(const Scenario& scenario, const Role& role) {
  std::int64_t sum = 0;
  for (const FlatStretch& stretch : role.stretches) {
    sum += optimizer_elements(scenario, stretch.range.size(), stretch.group);
  }
  return sum;
}

double gradient_size(const Scenario& scenario) {
  return static_cast<double>(size_of(scenario.training.grad_precision));
}

void write_zero(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  const std::int64_t held =
      scenario.layout.zero >= 2 ? owned_elements(scenario, role) : role.parameters;
  builder.elementwise("zero_gradients", ElementwiseKind::kFill, held, 0, gradient_size(scenario),
                      {}, {});
}

// Sum of squares; fp16 also unscales and looks for infinities, one more pass over the gradients.
void write_norm(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  const std::int64_t local = owned_elements(scenario, role);
  const double g = gradient_size(scenario);
  if (scenario.training.precision == DataType::kFp16) {
    builder.elementwise("unscale_gradients", ElementwiseKind::kReduction, local, 0, 2 * g, {}, {},
                        false, 2);
  }
  if (scenario.training.grad_clip == GradClip::kNone) return;
  builder.elementwise("gradient_norm", ElementwiseKind::kReduction, local, 0, g, {}, {}, false, 4);
}

// Clipping scales the gradients. AdamW on fp32 master weights reads gradient, weight and both
// moments, writes weight and moments; then the copy in the model's precision.
void write_update(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  const std::int64_t local = owned_elements(scenario, role);
  if (scenario.training.grad_clip != GradClip::kNone) {
    builder.elementwise("clip_gradients", ElementwiseKind::kOptimizer, local, 0,
                        2 * gradient_size(scenario), {}, {});
  }
  builder.elementwise("adamw", ElementwiseKind::kOptimizer, local, 0, gradient_size(scenario) + 24,
                      {}, {}, false, 4);
  if (scenario.rules.keeps_master_weights && scenario.training.precision != DataType::kFp32) {
    builder.elementwise("copy_parameters", ElementwiseKind::kCast, local, 0, 6, {}, {}, false, 2);
  }
}

}  // namespace

Block lower_gradient_cast(const Scenario& scenario, std::int64_t elements) {
  const Shape shape(scenario);
  Block block;
  block.name = "cast_gradients";
  BlockBuilder builder(shape, gradient_mode(scenario), block);
  builder.into(block.forward, Phase::kBackward);
  const auto bytes =
      static_cast<double>(shape.element + size_of(scenario.training.reduce_precision));
  builder.elementwise("cast_gradients", ElementwiseKind::kCast, elements, 0, bytes, {}, {}, true);
  return block;
}

Block lower_zero_gradients(const Scenario& scenario, const Role& role) {
  return one_list("zero_gradients", scenario, write_zero, role);
}
Block lower_gradient_norm(const Scenario& scenario, const Role& role) {
  return one_list("gradient_norm", scenario, write_norm, role);
}
Block lower_update(const Scenario& scenario, const Role& role) {
  return one_list("update", scenario, write_update, role);
}

}  // namespace stepcast
