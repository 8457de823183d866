// SPDX-License-Identifier: Apache-2.0
#include "program/optimizer.h"

#include "layout/scenario.h"
#include "memory/states.h"
#include "program/block_builder.h"
#include "program/block_events.h"
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
  place_events(block);
  return block;
}

// Elements that AdamW updates on a rank's device: its shards of all stretches, but for Muon's
// matrices and what the host updates.
std::int64_t adam_elements(const Scenario& scenario, const Role& role,
                           const std::vector<MuonShare>& shares) {
  std::int64_t sum = 0;
  for (const FlatStretch& stretch : role.stretches) {
    std::int64_t own = stretch.range.size();
    for (const MuonShare& share : shares) {
      own -= share.states.group == stretch.group ? share.states.elements : 0;
    }
    sum += optimizer_elements(scenario, own, stretch.group);
    sum -= host_elements(scenario, own, stretch.group);
  }
  return sum;
}

// Elements that the optimizer of a rank updates, on whichever side.
std::int64_t owned_elements(const Scenario& scenario, const Role& role,
                            const std::vector<MuonShare>& shares = {}) {
  std::int64_t sum = adam_elements(scenario, role, shares) + host_elements(scenario, role);
  for (const MuonShare& share : shares) sum += share.states.updated;
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
  const Shape& shape = builder.shape();
  cast_weights(builder, scenario, shape.attention_fp8, role.in_fp8 - role.in_fp4);
  cast_weights(builder, scenario, shape.fp8, role.in_fp4);
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

// The weight and the moments, read and written. Adafactor goes over a gradient three times:
// for the means of its rows and columns, for the norm of the update, and for the update.
double update_bytes(const Scenario& scenario) {
  const double passes = scenario.training.optimizer == Optimizer::kAdafactor ? 3 : 1;
  const auto weight = static_cast<double>(size_of(scenario.training.master_precision));
  return passes * gradient_size(scenario) + 2 * weight + 2 * moment_width(scenario);
}

// Clipping scales the gradients. AdamW reads gradient, weight and both
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
  const double rounded = narrow ? width_of(shape.fp8.type) : 2;
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

// Behind the optimizer, which leaves them alone. Every rank that holds them reads and writes them.
void write_balance(BlockBuilder& builder, const Scenario& scenario, const Role& role) {
  if (role.balancing == 0) return;
  const bool rounds =
      scenario.rules.keeps_master_weights && scenario.training.wide() != DataType::kFp32;
  const double bytes = gradient_size(scenario) + 2 * size_of(DataType::kFp32) + (rounds ? 2 : 0);
  builder.add("update_router_bias",
              BalanceUpdate{scenario.training.grad_precision, rounds,
                            builder.size(role.balancing, 0, bytes)},
              {}, {});
}

void write_clipping(BlockBuilder& builder, const Scenario& scenario, std::int64_t local) {
  if (scenario.rules.fuses_neighbours || scenario.training.grad_clip == GradClip::kNone) return;
  builder.add("clip_gradients",
              ClipGradients{scenario.training.grad_precision,
                            builder.size(local, 0, 2 * gradient_size(scenario))},
              {}, {});
}

}  // namespace

std::int64_t host_elements(const Scenario& scenario, const Role& role) {
  std::int64_t sum = 0;
  for (const FlatStretch& stretch : role.stretches) {
    sum += host_elements(scenario, stretch.range.size(), stretch.group);
  }
  return sum;
}

HostUpdate host_update(const Scenario& scenario, const Role& role) {
  const auto elements = static_cast<double>(host_elements(scenario, role));
  const Training& training = scenario.training;
  const double gradient = gradient_size(scenario);
  double each = update_bytes(scenario) + (training.wide() == DataType::kFp32 ? 0 : 2);
  if (scenario.rules.sums_on_host) {
    // The host clips too.
    if (training.grad_clip != GradClip::kNone) each += 2 * gradient;
  }
  const bool on_disk = scenario.layout.offload.optimizer_device == OffloadDevice::kNvme;
  const double states = 4 + moment_width(scenario);
  return {host_elements(scenario, role), each * elements, on_disk ? states * elements : 0, {}};
}

Block lower_returned(const Scenario& scenario, const Role& role) {
  const bool rounds =
      scenario.rules.offloads_moments && scenario.training.wide() != DataType::kFp32;
  return one_list(BlockKind::kUpdate, scenario, [&](BlockBuilder& builder) {
    if (!rounds) return;
    builder.add("copy_parameters",
                Cast{CastSubject::kParameters, false, DataType::kFp32, scenario.training.wide(),
                     builder.size(host_elements(scenario, role), 0, 4 + 2, 2)},
                {}, {});
  });
}

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
    const std::int64_t own = adam_elements(scenario, role, shares);
    if (own > 0 || host_elements(scenario, role) == 0) write_update(builder, scenario, own);
    write_balance(builder, scenario, role);
    write_muon(scenario, shares, builder);
  });
}

}  // namespace stepcast
