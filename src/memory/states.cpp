// SPDX-License-Identifier: Apache-2.0
#include "memory/states.h"

#include <algorithm>
#include <cmath>

#include "layout/fp8_recipe.h"
#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/scenario.h"
#include "layout/training.h"
#include "model/model.h"

namespace stepcast {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool shards_parameters(const Scenario& scenario) {
  const int zero = scenario.layout.zero;
  return zero == 3 || (scenario.rules.shards_parameters_with_gradients && zero == 2);
}

// Bytes of each state per parameter, wherever it is kept.
struct StateWidths {
  std::int64_t parameter, gradient, master;
};

StateWidths state_widths(const Scenario& scenario) {
  const Training& training = scenario.training;
  const bool mixed = training.wide() != DataType::kFp32;
  const bool half_parameters = mixed && scenario.rules.bf16_parameters;
  const std::int64_t half_gradient = scenario.rules.keeps_half_gradients ? 2 : 0;
  return {.parameter = half_parameters ? 2 : 4,
          .gradient = size_of(training.grad_precision) + half_gradient,
          .master = half_parameters && scenario.rules.keeps_master_weights ? 4 : 0};
}

ByteCount moment_bytes(const Scenario& scenario, std::int64_t elements) {
  return static_cast<ByteCount>(std::ceil(moment_width(scenario) * static_cast<double>(elements)));
}

}  // namespace

// Block-wise quantised moments have a scale in fp32 for each 256 (bitsandbytes, torchao's
// low_bit_optim).
double moment_width(const Scenario& scenario) {
  switch (scenario.training.optimizer) {
    case Optimizer::kAdamW:
    case Optimizer::kMuon:
      return 2 * static_cast<double>(size_of(scenario.training.moments_precision));
    case Optimizer::kAdamW8bit:
      return 2 * (1 + 4.0 / 256);
    case Optimizer::kSgd:
      return static_cast<double>(size_of(scenario.training.master_precision));
    case Optimizer::kAdafactor:
      return 0;  // factored_bytes()
  }
  return 0;
}

ByteCount factored_bytes(const Scenario& scenario, std::int64_t rows, std::int64_t columns,
                         AxisGroup group) {
  const std::int64_t own = optimizer_elements(scenario, rows, group);
  return size_of(DataType::kFp32) * (columns > 1 ? own + columns : own);
}

std::int64_t host_elements(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  const std::int64_t shard = optimizer_elements(scenario, elements, group);
  return static_cast<std::int64_t>(
      std::ceil(scenario.layout.offload.optimizer * static_cast<double>(shard)));
}

// A rank that is alone in its group reduces nothing, unless units are gathered and reduced.
bool leaves_as_reduced(const Scenario& scenario, AxisGroup group) {
  const Layout& layout = scenario.layout;
  const bool by_unit = scenario.rules.gradients_by_unit || layout.zero == 3;
  return layout.offload.optimizer > 0 && scenario.rules.sums_on_host && layout.zero >= 2 &&
         (by_unit || size_of(group, layout) > 1);
}

OffloadedStates offloaded_states(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  const Offload& offload = scenario.layout.offload;
  const StateWidths widths = state_widths(scenario);
  const StateBytes all = state_bytes(scenario, elements, group);
  const std::int64_t moved = host_elements(scenario, elements, group);
  OffloadedStates out;
  if (moved > 0) {
    const ByteCount moments = moment_bytes(scenario, moved);
    out.saved.optimizer = moments + (scenario.rules.offloads_moments ? 0 : widths.master * moved);
    // The host's fp32 weights are parameters themselves where these lie there too, and there is no
    // other copy of them.
    const bool own_weights = widths.master > 0 || offload.parameters == 0;
    const ByteCount states = moments + (own_weights ? 4 * moved : 0);
    if (offload.optimizer_device == OffloadDevice::kCpu) out.on_host += states;
    out.on_host += widths.gradient * moved;
    if (leaves_as_reduced(scenario, group)) {
      out.saved.gradients =
          static_cast<ByteCount>(offload.optimizer * static_cast<double>(all.gradients));
    }
  }
  out.saved.parameters =
      static_cast<ByteCount>(offload.parameters * static_cast<double>(all.parameters));
  if (offload.parameter_device == OffloadDevice::kCpu) out.on_host += out.saved.parameters;
  return out;
}

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

ByteCount outer_bytes(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  if (!scenario.training.outer.any()) return 0;
  return 2 * size_of(DataType::kFp32) * optimizer_elements(scenario, elements, group);
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
  const Training& training = scenario.training;
  const std::int64_t trained = training.trains_adapters()
                                   ? scenario.adapter_elements()
                                   : count_parameters(scenario.model).total();
  const std::int64_t outer =
      scenario.training.outer.any() ? 2 * size_of(DataType::kFp32) * trained : 0;
  return (widths.parameter + widths.master) * trained + moment_bytes(scenario, trained) + outer;
}

namespace {

// Products in fp8 beside others in fp4 are those of attention.
Fp8 attention_or_all(const Scenario& scenario, std::int64_t in_fp4) {
  return in_fp4 > 0 ? attention_fp8_of(scenario) : fp8_of(scenario);
}

// DeepSpeed's momentum has the type of the gradients that it is made of, Megatron's is fp32, and
// torchtitan's has the type of the weights.
DataType momentum_type(const Scenario& scenario) {
  switch (scenario.rules.muon_deal) {
    case MuonDeal::kMatrices:
      return DataType::kFp32;
    case MuonDeal::kOwners:
      return scenario.training.master_precision;
    default:
      return scenario.training.grad_precision;
  }
}

}  // namespace

ByteCount fp8_weight_bytes(const Scenario& scenario, std::int64_t elements, std::int64_t in_fp4,
                           std::int64_t tables) {
  if (elements == 0 || shards_parameters(scenario)) return 0;
  const ByteCount copies = (in_fp4 > 0 ? fp8_of(scenario).weight_bytes(in_fp4) : 0) +
                           attention_or_all(scenario, in_fp4).weight_bytes(elements - in_fp4);
  if (!scenario.training.fp8_params) return copies;
  return copies - (elements - tables) * size_of(scenario.training.wide());
}

ByteCount frozen_bytes(const Scenario& scenario, const FrozenWeights& weights) {
  ByteCount whole = weights.bytes(scenario.training.wide());
  if (weights.in_fp8 > 0) whole += fp8_of(scenario).weight_bytes(weights.in_fp8) - weights.in_fp8;
  return shards_parameters(scenario) ? divide_up(whole, shard_ranks(scenario)) : whole;
}

StateBytes muon_bytes(const Scenario& scenario, const MuonStates& states) {
  const StateWidths widths = state_widths(scenario);
  const StateBytes adam = state_bytes(scenario, states.elements, states.group);
  StateBytes out;
  if (scenario.rules.muon_deal == MuonDeal::kMatrices) {
    const std::int64_t ranks = scenario.layout.zero >= 1 ? shard_ranks(scenario, states.group) : 1;
    const std::int64_t padding = ranks * states.updated - states.elements;
    out.parameters = widths.parameter * padding;
    out.gradients = widths.gradient * padding;
  } else if (scenario.rules.muon_deal == MuonDeal::kTouched && scenario.layout.zero == 2) {
    out.gradients = widths.gradient * (states.moments - states.updated);
  }
  const std::int64_t moment = size_of(momentum_type(scenario));
  out.optimizer = widths.master * states.updated + moment * states.moments - adam.optimizer;
  return out;
}

StateBytes state_bytes(const Scenario& scenario, std::int64_t elements, AxisGroup group) {
  const StateWidths widths = state_widths(scenario);
  const int zero = scenario.layout.zero;
  const std::int64_t shard = divide_up(elements, shard_ranks(scenario, group));
  StateBytes out;
  out.parameters = widths.parameter * (shards_parameters(scenario) ? shard : elements);
  out.gradients = widths.gradient * held_gradients(scenario, elements, group);
  const std::int64_t owned = zero >= 1 ? shard : elements;
  out.optimizer = widths.master * owned + moment_bytes(scenario, owned);
  return out;
}

}  // namespace stepcast
