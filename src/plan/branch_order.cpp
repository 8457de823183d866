// SPDX-License-Identifier: Apache-2.0
#include "plan/branch_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "layout/layout.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "plan/space.h"

namespace stepcast {
namespace {

// Bytes per parameter in mixed precision: weights of 16 bits and gradients of 32 stay with their
// stage, master weights and moments of Adam are sharded over replicas (docs/memory.md).
constexpr double kHeldBytes = 6;
constexpr double kShardedBytes = 12;
constexpr double kFrozenBytes = 2;
constexpr double kRoomForStates = 0.75;  // of the limit; activations take the rest

std::int64_t expert_parameters(const Model& model) {
  std::int64_t out = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    out += count_layer(model, layer).experts;
  }
  return out;
}

// Experts may be spread over all ranks of a stage, as far as there are experts.
double state_bytes(const Scenario& scenario, double experts, double others) {
  const Layout& layout = scenario.layout;
  const auto cut = static_cast<double>(layout.tp * layout.pp);
  const auto spread = static_cast<double>(
      scenario.model.moe
          ? std::min(scenario.model.moe->experts, scenario.cluster.gpus() / (layout.tp * layout.pp))
          : 1);
  const double held = experts / (cut * std::max(1.0, spread)) + others / cut;
  if (scenario.training.trains_adapters()) return kFrozenBytes * held;
  return kHeldBytes * held +
         kShardedBytes * (experts + others) / static_cast<double>(scenario.cluster.gpus());
}

}  // namespace

std::vector<std::size_t> by_promise(const std::vector<LayoutChoice>& branches, const Space& space,
                                    ByteCount memory_limit, Scenario& scenario) {
  const Model& model = space.base().model;
  const auto experts = static_cast<double>(expert_parameters(model));
  const double others = static_cast<double>(count_parameters(model).total()) - experts;
  using Promise = std::tuple<bool, double>;
  std::vector<Promise> promises;
  for (const LayoutChoice& branch : branches) {
    space.put(branch, scenario);
    const Layout& layout = scenario.layout;
    const double bytes = state_bytes(scenario, experts, others);
    const bool too_large = bytes > kRoomForStates * static_cast<double>(memory_limit);
    const auto spread = static_cast<double>(
        scenario.cluster.gpus() / std::max<std::int64_t>(1, layout.dp) * layout.micro_batch);
    promises.emplace_back(too_large, too_large ? bytes : spread);
  }
  std::vector<std::size_t> out(branches.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::stable_sort(out, {}, [&](std::size_t i) { return promises[i]; });
  return out;
}

}  // namespace stepcast
