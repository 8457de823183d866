// SPDX-License-Identifier: Apache-2.0
#include "program/optimizer.h"

#include "memory/states.h"
#include "program/block_builder.h"
#include "program/fp8_weights.h"

namespace stepcast {
namespace {

template <class Write>
Block one_list(BlockKind kind, const Scenario& scenario, const Write& write) {
  const Shape shape(scenario);
  Block block;
  block.kind = kind;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  builder.into(Pass::kForward, Phase::kOptimizer);
  write(builder);
  return block;
}

// Elements that AdamW updates on a rank: its shards of all stretches, but for Muon's matrices.
std::int64_t adam_elements(const Scenario& scenario, const Role& role,
                           const std::vector<MuonShare>& shares) {
  std::int64_t sum = 0;
  for (const FlatStretch& stretch : role.stretches) {
    std::int64_t own = stretch.range.size();
    for (const MuonShare& share : shares) own -= share.group == stretch.group ? share.elements : 0;
    sum += optimizer_elements(scenario, own, stretch.group);
  }
  return sum;
}

// Elements that the optimizer of a rank updates.
std::int64_t owned_elements(const Scenario& scenario, const Role& role,
                            const std::vector<MuonShare>& shares = {}) {
  std::int64_t sum = adam_elements(scenario, role, shares);
  for (const MuonShare& share : shares) sum += share.largest;
  return sum;
}

double gradient_size(const Scenario& scenario) {
  return static_cast<double>(size_of(scenario.training.grad_precision));
}

void write_zero(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  const std::int64_t held =
      scenario.layout.zero >= 2 ? owned_elements(scenario, role) : role.parameters;
  builder.add("zero_gradients",
              ZeroGradients{scenario.training.grad_precision,
                            builder.size(held, 0, gradient_size(scenario))},
              {}, {});
}

// Sum of squares; fp16 also unscales and looks for infinities, one more pass over the gradients.
// The block at the begin of a step also makes the weights' copies that products in fp8 read.
void write_begin(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  write_zero(builder, scenario, role);
  builder.into(Pass::kForward, Phase::kForward);
  cast_weights(builder, scenario, role.in_fp8);
}

void write_norm(BlockBuilder& builder, const Scenario& scenario, std::int64_t local) {
  const DataType type = scenario.training.grad_precision;
  const double g = gradient_size(scenario);
  if (scenario.training.precision == DataType::kFp16) {
    builder.add("unscale_gradients", UnscaleGradients{type, builder.size(local, 0, 2 * g, 2)}, {},
                {});
  }
  if (scenario.training.grad_clip == GradClip::kNone) return;
  builder.add("gradient_norm", SquaredNorm{type, builder.size(local, 0, g, 4)}, {}, {});
}

// The fp32 weight and both moments, read and written.
double update_bytes(const Scenario& scenario) {
  return gradient_size(scenario) + 8 +
         4 * static_cast<double>(size_of(scenario.training.moments_precision));
}

// Clipping scales the gradients. AdamW on fp32 master weights reads gradient, weight and both
// moments, writes weight and moments; then the copy in the model's precision. All of it may be one
// kernel, which reads each once.
void write_update(BlockBuilder& builder, const Scenario& scenario, std::int64_t local) {
  const DataType type = scenario.training.grad_precision;
  const bool clips = scenario.training.grad_clip != GradClip::kNone;
  const bool rounds =
      scenario.rules.keeps_master_weights && scenario.training.wide() != DataType::kFp32;
  // Nearly all fp8 parameters are matrices, which are written as they are gathered.
  const Shape& shape = builder.shape();
  const bool narrow = shape.fp8_params && !shape.fp8.recipe->gathers_wide;
  const double rounded = narrow ? 1 : 2;
  if (scenario.rules.fuses_neighbours) {
    const double bytes = update_bytes(scenario) + (rounds ? rounded : 0);
    builder.add("adamw", OptimizerUpdate{type, clips, rounds, builder.size(local, 0, bytes)}, {},
                {});
    return;
  }
  builder.add(
      "adamw",
      OptimizerUpdate{type, false, false, builder.size(local, 0, update_bytes(scenario), 4)}, {},
      {});
  if (rounds) {
    builder.add("copy_parameters",
                Cast{CastSubject::kParameters, false, DataType::kFp32, scenario.training.wide(),
                     builder.size(local, 0, 4 + rounded, 2)},
                {}, {});
  }
}

void write_clipping(BlockBuilder& builder, const Scenario& scenario, std::int64_t local) {
  if (scenario.rules.fuses_neighbours || scenario.training.grad_clip == GradClip::kNone) return;
  builder.add("clip_gradients",
              ClipGradients{scenario.training.grad_precision,
                            builder.size(local, 0, 2 * gradient_size(scenario))},
              {}, {});
}

}  // namespace

Block lower_gradient_cast(const Scenario& scenario, std::int64_t elements) {
  const Shape shape(scenario);
  Block block;
  block.kind = BlockKind::kCastGradients;
  BlockBuilder builder(scenario.rules, shape, gradient_mode(scenario), block);
  builder.into(Pass::kForward, Phase::kBackward);
  const auto bytes =
      static_cast<double>(shape.element + size_of(scenario.training.reduce_precision));
  builder.add("cast_gradients",
              Cast{CastSubject::kGradients, true, shape.type, scenario.training.reduce_precision,
                   builder.size(elements, 0, bytes)},
              {}, {});
  return block;
}

Block lower_zero_gradients(const Scenario& scenario, const Role& role) {
  return one_list(BlockKind::kZeroGradients, scenario,
                  [&](BlockBuilder& builder) { write_begin(builder, scenario, role); });
}
Block lower_gradient_norm(const Scenario& scenario, const Role& role,
                          const std::vector<MuonShare>& shares) {
  return one_list(BlockKind::kGradientNorm, scenario, [&](BlockBuilder& builder) {
    write_norm(builder, scenario, owned_elements(scenario, role, shares));
  });
}
Block lower_update(const Scenario& scenario, const Role& role,
                   const std::vector<MuonShare>& shares) {
  return one_list(BlockKind::kUpdate, scenario, [&](BlockBuilder& builder) {
    write_clipping(builder, scenario, owned_elements(scenario, role, shares));
    write_update(builder, scenario, adam_elements(scenario, role, shares));
    write_muon(scenario, shares, builder);
  });
}

}  // namespace stepcast
