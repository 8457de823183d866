// SPDX-License-Identifier: Apache-2.0
#include "memory/states.h"

#include <algorithm>

#include "layout/fp8_recipe.h"

namespace stepcast {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool shards_parameters(const Scenario& scenario) {
  const int zero = scenario.layout.zero;
  return zero == 3 || (scenario.rules.shards_parameters_with_gradients && zero == 2);
}

// Bytes of each state per parameter, wherever it is kept.
struct StateWidths {
  std::int64_t parameter, gradient, master, moments;
};

StateWidths state_widths(const Scenario& scenario) {
  const Training& training = scenario.training;
  const bool mixed = training.wide() != DataType::kFp32;
  const bool half_parameters = mixed && scenario.rules.bf16_parameters;
  const std::int64_t half_gradient = scenario.rules.keeps_half_gradients ? 2 : 0;
  return {.parameter = half_parameters ? 2 : 4,
          .gradient = size_of(training.grad_precision) + half_gradient,
          .master = half_parameters && scenario.rules.keeps_master_weights ? 4 : 0,
          .moments = 2 * size_of(training.moments_precision)};
}

}  // namespace

StateBytes& StateBytes::operator+=(const StateBytes& more) {
  parameters += more.parameters;
  gradients += more.gradients;
  optimizer += more.optimizer;
  return *this;
}

std::int64_t shard_ranks(const Scenario& scenario, AxisGroup group) {
  return inner_ranks(group, scenario.layout);
}

// Megatron's distributed optimizer keeps the full gradient buffer; ZeRO-2 keeps a shard.
std::int64_t held_gradients(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  return scenario.layout.zero >= 2 ? divide_up(elements, shard_ranks(scenario, group)) : elements;
}

std::int64_t optimizer_elements(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  return scenario.layout.zero >= 1 ? divide_up(elements, shard_ranks(scenario, group)) : elements;
}

ByteCount update_copy_bytes(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  if (!scenario.rules.copies_flat_gradients) return 0;
  const std::int64_t gradient = size_of(scenario.training.grad_precision);
  const std::int64_t wide = size_of(DataType::kFp32);
  // If gradients are sharded a flat tensor is cast; else one tensor after the other is cast, and
  // all of them are then made flat.
  const std::int64_t flat = scenario.layout.zero >= 1 ? gradient : wide;
  const std::int64_t copies = flat + (gradient < wide ? wide : 0);
  return copies * optimizer_elements(scenario, elements, group);
}

ByteCount checkpoint_bytes(const Scenario& scenario) {
  const StateWidths widths = state_widths(scenario);
  const std::int64_t saved = widths.parameter + widths.master + widths.moments;
  const Training& training = scenario.training;
  return saved * (training.trains_adapters() ? scenario.adapter_elements()
                                             : count_parameters(scenario.model).total());
}

ByteCount fp8_weight_bytes(const Scenario& scenario, std::int64_t elements) {
  if (elements == 0 || shards_parameters(scenario)) return 0;
  const ByteCount copies = fp8_of(scenario).weight_bytes(elements);
  return scenario.training.fp8_params ? copies - elements * size_of(scenario.training.wide())
                                      : copies;
}

ByteCount frozen_bytes(const Scenario& scenario, const FrozenWeights& weights) {
  ByteCount whole = weights.bytes(scenario.training.wide());
  if (weights.in_fp8 > 0) whole += fp8_of(scenario).weight_bytes(weights.in_fp8) - weights.in_fp8;
  return shards_parameters(scenario) ? divide_up(whole, shard_ranks(scenario)) : whole;
}

StateBytes muon_bytes(const Scenario& scenario, std::int64_t elements, std::int64_t largest,
                      AxisGroup group) {
  const StateWidths widths = state_widths(scenario);
  const StateBytes adam = state_bytes(scenario, elements, group);
  const std::int64_t ranks = scenario.layout.zero >= 1 ? shard_ranks(scenario, group) : 1;
  const std::int64_t padding = ranks * largest - elements;
  StateBytes out;
  out.parameters = widths.parameter * padding;
  out.gradients = widths.gradient * padding;
  out.optimizer = (widths.master + size_of(DataType::kFp32)) * largest - adam.optimizer;
  return out;
}

StateBytes state_bytes(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  const StateWidths widths = state_widths(scenario);
  const int zero = scenario.layout.zero;
  const std::int64_t shard = divide_up(elements, shard_ranks(scenario, group));
  StateBytes out;
  out.parameters = widths.parameter * (shards_parameters(scenario) ? shard : elements);
  out.gradients = widths.gradient * held_gradients(scenario, elements, group);
  out.optimizer = (widths.master + widths.moments) * (zero >= 1 ? shard : elements);
  return out;
}

}  // namespace stepcast
