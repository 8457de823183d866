// SPDX-License-Identifier: Apache-2.0
#include "program/expert_shape.h"

#include <algorithm>
#include <cmath>

#include "cluster/gpu_architecture.h"
#include "layout/scenario.h"
#include "operation/distinct_destinations.h"

namespace stepcast {
namespace {

// Rows that every expert takes of a rank's tokens (GShard, section 3.1; Megatron: get_capacity).
std::int64_t capacity(const Moe& moe, std::int64_t tokens) {
  const double fair = static_cast<double>(tokens * moe.top_k) / static_cast<double>(moe.experts);
  return static_cast<std::int64_t>(std::ceil(fair * moe.capacity_factor));
}

// Compute units of AMD that a port of DeepEP's kernels takes (AMD-AGI/Primus@18e5df3b,
// docs/tech_blogs/moe_package_2.0: 80; ROCm/mori README@05bb5f40).
constexpr std::int64_t kComputeUnits = 80;

}  // namespace

ExpertShape::ExpertShape(const Scenario& scenario, const Shape& shape) {
  const Moe& moe = *scenario.model.moe;
  const Layout& layout = scenario.layout;
  experts = moe.experts;
  top_k = moe.top_k;
  ranks = layout.ep;
  tensor = layout.etp;
  local = experts / ranks;
  tokens = shape.rows;
  padded = moe.capacity_factor > 0;
  sent = padded ? experts * capacity(moe, tokens) : tokens * top_k;
  // On one rank the experts together have all rows, whichever of them is the fullest.
  const bool uneven = !padded && ranks > 1;
  received = uneven
                 ? static_cast<std::int64_t>(std::ceil(static_cast<double>(sent) * moe.imbalance))
                 : sent;
  rows = received * tensor;
  const auto room = [&](double factor) {
    const double balanced = static_cast<double>(sent * tensor);
    return std::max(rows, static_cast<std::int64_t>(std::ceil(balanced * factor)));
  };
  const bool states_room = moe.rank_capacity_factor > 0 && ranks * tensor > 1;
  held = states_room ? room(moe.rank_capacity_factor) : rows;
  stashed = states_room && moe.stash_factor > 0;
  kept = stashed ? room(moe.stash_factor) : held;
  sized = padded || states_room;
  ffn = moe.ffn / tensor;
  ups = (scenario.model.mlp == Mlp::kSwiglu ? 2 : 1) * ffn;
  dispatcher = moe.dispatcher;
  exchange_sms = moe.dispatcher_sms;
  const bool on_amd = traits_of(scenario.cluster.spec.accelerator.architecture).runs_rccl;
  if (exchange_sms == 0 && on_amd && dispatcher != MoeDispatcher::kHybridEp) {
    exchange_sms = kComputeUnits;
  }
  // Experts that lie as dense matrices do are reduced with them.
  const bool as_dense = ranks == 1 && tensor == layout.tp;
  replicas = as_dense ? AxisGroup::kData : AxisGroup::kExpertData;
}

std::int64_t ExpertShape::favoured_rows() const {
  const std::int64_t fullest = padded ? tokens * top_k : received;
  return std::min(fullest / ranks, tokens * std::min(local, top_k));
}

std::int64_t ExpertShape::distinct_tokens() const {
  const double even =
      distinct_destinations(static_cast<double>(group()), static_cast<double>(copies()));
  const double fullest = static_cast<double>(received) / static_cast<double>(sent);
  const double all = static_cast<double>(group() * tokens);
  return static_cast<std::int64_t>(
      std::ceil(std::min(all, static_cast<double>(tokens) * even * fullest)));
}

}  // namespace stepcast
