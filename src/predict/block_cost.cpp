// SPDX-License-Identifier: Apache-2.0
#include "predict/block_cost.h"

#include <algorithm>

namespace stepcast {
namespace {

// What a GEMM cannot hide of a collective that is pipelined with it in `steps` pieces: the first
// piece, or the time by which the collective is longer (Wang et al. 2023, section 3; Megatron
// --tp-comm-overlap).
Seconds not_hidden(Seconds collective, Seconds gemm, std::int64_t steps) {
  const double hidden = static_cast<double>(steps - 1) / static_cast<double>(steps);
  return std::max(collective / static_cast<double>(steps), collective - gemm * hidden);
}

// The loss, where the model and a micro-batch end.
bool is_loss(const Operation& operation) {
  return std::holds_alternative<CrossEntropy>(operation.work) && operation.phase == Phase::kForward;
}

const Collective* overlapped_collective(const Operation& operation) {
  const auto* collective = std::get_if<Collective>(&operation.work);
  return collective != nullptr && collective->overlapped ? collective : nullptr;
}

}  // namespace

BlockCosts::BlockCosts(const Scenario& scenario, const KernelCosts& kernels,
                       const CollectiveCosts& collectives)
    : scenario_(scenario),
      kernels_(kernels),
      collectives_(collectives),
      host_(kernels.profile().host[scenario.training.framework]) {}

const GroupPlacement* BlockCosts::placement(AxisGroup group) const {
  const auto found = std::ranges::find(groups_, group, &GroupPlacement::group);
  return found == groups_.end() || found->devices.size() < 2 ? nullptr : &*found;
}

Seconds BlockCosts::launch_collective() const { return Seconds(host_.collective_s); }
Seconds BlockCosts::launch_copy() const { return Seconds(host_.launch_s); }

RunCost BlockCosts::price_kernel(const KernelPrice& price, Phase phase) const {
  RunCost out;
  const bool backward = phase == Phase::kBackward || phase == Phase::kWeightGradient;
  const double launch = scenario_.training.cuda_graphs
                            ? host_.graph_launch_s
                            : host_.launch_s * (backward ? host_.backward_factor : 1.0);
  out.gpu = price.time;
  out.jitter = price.jitter;
  out.host = Seconds(launch * static_cast<double>(price.launches));
  out.floor = out.host + out.gpu;
  (phase == Phase::kRecompute   ? out.recompute
   : phase == Phase::kOptimizer ? out.optimizer
                                : out.compute) = price.time;
  if (phase != Phase::kRecompute && phase != Phase::kOptimizer) {
    (price.curve == Curve::kGemm        ? out.gemm
     : price.curve == Curve::kAttention ? out.attention
                                        : out.memory_bound) = price.time;
  }
  const Curve error = price.exact ? Curve::kExact : price.curve;
  out.by_curve[static_cast<std::size_t>(error)] = price.time;
  out.by_provenance[static_cast<std::size_t>(price.provenance)] = price.time;
  return out;
}

RunCost BlockCosts::price_collective(const Collective& collective) const {
  RunCost out;
  const GroupPlacement* group = placement(collective.group);
  if (group == nullptr) return out;
  const CollectivePrice price =
      collectives_.price(collective.kind, collective.bytes, collective.type, group->devices);
  out.gpu = price.latency + price.work / price.rate_bound * group->slowdown;
  out.host = launch_collective();
  out.floor = out.host + out.gpu;
  out.communication(collective.group) = out.gpu;
  out.core_idle = price.latency + (out.gpu - price.latency) * (1 - price.cpu_share);
  out.by_curve[static_cast<std::size_t>(price.curve)] = out.gpu;
  out.by_provenance[static_cast<std::size_t>(price.provenance)] = out.gpu;
  return out;
}

RunCost BlockCosts::price(const Operation& operation) const {
  if (const auto* collective = std::get_if<Collective>(&operation.work)) {
    return price_collective(*collective);
  }
  if (!runs_kernel(operation.work)) return {};
  RunCost out = price_kernel(kernels_.price(operation), operation.phase);
  out.flops = flops_of(operation);
  if (is_loss(operation)) {
    out.host += Seconds(host_.micro_batch_s);
    out.floor = out.host + out.gpu;
  }
  return out;
}

std::vector<PricedOperation> BlockCosts::price_each(
    const std::vector<Operation>& operations) const {
  std::vector<PricedOperation> out;
  out.reserve(operations.size());
  for (const Operation& operation : operations) out.push_back({&operation, price(operation)});
  // Tensor-parallel overlap: an all-gather hides behind the GEMM that reads it, a reduction behind
  // the GEMM that feeds it (forward) or the weight gradient after it (backward).
  const auto gemm_at = [&](std::size_t i) {
    return i < out.size() && product_of(out[i].operation->work) ? out[i].cost.gpu : Seconds(0);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Collective* collective = overlapped_collective(*out[i].operation);
    if (collective == nullptr) continue;
    const bool gathers = collective->kind == CollectiveKind::kAllGather;
    const Seconds after = gemm_at(i + 1), before = i > 0 ? gemm_at(i - 1) : Seconds(0);
    const Seconds gemm = gathers ? after : std::max(before, after);
    RunCost& cost = out[i].cost;
    const GroupPlacement* group = placement(collective->group);
    if (group == nullptr) continue;
    const auto members = static_cast<std::int64_t>(group->devices.size());
    cost = cost.exposed(not_hidden(cost.gpu, gemm, members));
  }
  wait_for_last(out);
  return out;
}

// Each collective begins when the last member has finished what comes before it.
void BlockCosts::wait_for_last(std::vector<PricedOperation>& operations) const {
  Jitter since_meeting;
  for (auto& [operation, cost, lag] : operations) {
    const auto* collective = std::get_if<Collective>(&operation->work);
    if (collective == nullptr) {
      since_meeting += cost.jitter;
      continue;
    }
    const GroupPlacement* group = placement(collective->group);
    if (group == nullptr) continue;
    lag = lag_of_last(since_meeting, static_cast<std::int64_t>(group->devices.size()));
    cost.wait(lag);
    since_meeting = {};
  }
}

RunCost BlockCosts::price(const std::vector<Operation>& operations) const {
  return replay_block(price_each(operations));
}

}  // namespace stepcast
