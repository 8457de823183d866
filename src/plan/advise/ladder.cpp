// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/ladder.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "cluster/cluster.h"
#include "core/assert.h"
#include "layout/framework.h"

namespace stepcast {
namespace {

using Ranges = std::vector<ValueRange>;

constexpr std::int64_t kAnyMore = std::numeric_limits<std::int64_t>::max();

// Tensor parallelism all-reduces in every layer: it stays where GPUs reach each other without the
// network.
std::int64_t domain(const ClusterSpec& cluster) {
  return std::min(cluster.gpus, cluster.gpus_per_domain());
}

Ranges whole_model_on_each(std::int64_t zero) {
  return {
      {"layout.tp", 1, 1}, {"layout.pp", 1, 1}, {"layout.ep", 1, 1}, {"layout.zero", zero, zero}};
}

Ranges everything(const ClusterSpec&) { return {}; }
Ranges without_recomputation(const ClusterSpec&) { return {{"layout.recompute", 0, 0}}; }
Ranges with_recomputation(const ClusterSpec&) { return {{"layout.recompute", 1, kAnyMore}}; }
template <std::int64_t zero>
Ranges replicas(const ClusterSpec&) {
  return whole_model_on_each(zero);
}
Ranges expert_parallel(const ClusterSpec&) {
  return {{"layout.tp", 1, 1}, {"layout.pp", 1, 1}, {"layout.ep", 2, kAnyMore}};
}
Ranges tensor_parallel(const ClusterSpec& cluster) {
  return {{"layout.tp", 2, domain(cluster)}, {"layout.pp", 1, 1}};
}
Ranges pipeline(const ClusterSpec&) { return {{"layout.tp", 1, 1}, {"layout.pp", 2, kAnyMore}}; }
Ranges three_dimensions(const ClusterSpec& cluster) {
  return {{"layout.tp", 2, domain(cluster)}, {"layout.pp", 2, kAnyMore}};
}

// One that goes on from ZeRO-1 to sharded gradients and keeps whole parameters.
Framework framework_of_zero_2() {
  const std::vector<Framework> all = all_frameworks();
  const auto found = std::ranges::find_if(all, [](Framework framework) {
    const FrameworkTraits& traits = traits_of(framework);
    return traits.least_proposed_zero < 2 && traits.most_proposed_zero >= 2;
  });
  STEPCAST_ASSERT(found != all.end(), "a framework has ZeRO-2");
  return *found;
}

using enum TrainingMode;

std::vector<Rung> rungs_of_one_gpu() {
  const auto rung = [](const char* id, const char* title, const char* holds,
                       std::vector<TrainingMode> modes, std::optional<TrainingMode> mode,
                       auto part) {
    return Rung{id, title, holds, true, std::move(modes), mode, {}, part};
  };
  return {
      rung("lora", "LoRA on one GPU", "one GPU holds the frozen base in 16 bits", {kLora}, kLora,
           everything),
      rung("qlora", "QLoRA on one GPU", "one GPU holds the frozen base, in 4 bits", {kLora, kQlora},
           kQlora, everything),
      rung("one-gpu", "one GPU", "one GPU holds every state and all that backward needs",
           {kPretrain}, {}, without_recomputation),
      rung("one-gpu-recompute", "one GPU, recomputation",
           "one GPU holds every state, whatever is recomputed", {kPretrain}, {},
           with_recomputation),
  };
}

Rung with_experts(Rung rung) {
  rung.of_experts = true;
  return rung;
}

std::vector<Rung> rungs_of_all_gpus() {
  const auto rung = [](const char* id, const char* title, const char* holds, auto part,
                       std::optional<Framework> framework = {}) {
    return Rung{id, title, holds, false, {kPretrain, kLora, kQlora}, {}, framework, part};
  };
  return {
      rung("ddp", "DDP", "every GPU holds a whole copy of all states", replicas<0>),
      rung("zero-1", "ZeRO-1", "optimizer states are sharded, parameters and gradients are not",
           replicas<1>),
      rung("zero-2", "ZeRO-2", "optimizer states and gradients are sharded, parameters are not",
           replicas<2>, framework_of_zero_2()),
      rung("fsdp", "FSDP (ZeRO-3)", "states are sharded, activations are not", replicas<3>),
      with_experts(rung("ep", "EP", "experts are spread, all else is on every GPU or sharded",
                        expert_parallel)),
      rung("tp", "TP in the node", "layers are cut over one node at most", tensor_parallel),
      rung("pp", "PP", "each GPU holds whole layers", pipeline),
      rung("3d", "TP x PP x DP", "each GPU holds its cut of its stage's layers", three_dimensions),
  };
}

}  // namespace

const std::vector<Rung>& ladder() {
  static const std::vector<Rung> all = [] {
    std::vector<Rung> rungs = rungs_of_one_gpu();
    for (const Rung& rung : rungs_of_all_gpus()) rungs.push_back(rung);
    return rungs;
  }();
  return all;
}

const Rung& rung_named(std::string_view id) {
  const auto found = std::ranges::find(ladder(), id, &Rung::id);
  STEPCAST_ASSERT(found != ladder().end(), "a rung of the ladder");
  return *found;
}

}  // namespace stepcast
