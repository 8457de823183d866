// SPDX-License-Identifier: Apache-2.0
#include "advise/ladder.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/assert.h"

namespace stepcast {
namespace {

using Ranges = std::vector<ValueRange>;

constexpr std::int64_t kAnyMore = std::numeric_limits<std::int64_t>::max();

// Tensor parallelism all-reduces in every layer: it stays where GPUs reach each other without the
// network.
std::int64_t domain(const ClusterSpec& cluster) {
  return std::min(cluster.gpus, cluster.gpus_per_node * cluster.nvlink_domain_nodes);
}

Ranges whole_model_on_each(std::int64_t zero) {
  return {{"layout.tp", 1, 1}, {"layout.pp", 1, 1}, {"layout.zero", zero, zero}};
}

Ranges everything(const ClusterSpec&) { return {}; }
Ranges without_recomputation(const ClusterSpec&) { return {{"layout.recompute", 0, 0}}; }
Ranges with_recomputation(const ClusterSpec&) { return {{"layout.recompute", 1, kAnyMore}}; }
template <std::int64_t zero>
Ranges replicas(const ClusterSpec&) {
  return whole_model_on_each(zero);
}
Ranges tensor_parallel(const ClusterSpec& cluster) {
  return {{"layout.tp", 2, domain(cluster)}, {"layout.pp", 1, 1}};
}
Ranges pipeline(const ClusterSpec&) { return {{"layout.tp", 1, 1}, {"layout.pp", 2, kAnyMore}}; }
Ranges three_dimensions(const ClusterSpec& cluster) {
  return {{"layout.tp", 2, domain(cluster)}, {"layout.pp", 2, kAnyMore}};
}

}  // namespace

const std::vector<Rung>& ladder() {
  using enum TrainingMode;
  static const std::vector<TrainingMode> any = {kPretrain, kLora, kQlora};
  static const std::vector<Rung> all = {
      {"lora",
       "LoRA on one GPU",
       "one GPU holds the frozen base in 16 bits",
       true,
       {kLora},
       kLora,
       {},
       everything},
      {"qlora",
       "QLoRA on one GPU",
       "one GPU holds the frozen base, in 4 bits",
       true,
       {kLora, kQlora},
       kQlora,
       {},
       everything},
      {"one-gpu",
       "one GPU",
       "one GPU holds every state and all that backward needs",
       true,
       {kPretrain},
       {},
       {},
       without_recomputation},
      {"one-gpu-recompute",
       "one GPU, recomputation",
       "one GPU holds every state, whatever is recomputed",
       true,
       {kPretrain},
       {},
       {},
       with_recomputation},
      {"ddp", "DDP", "every GPU holds a whole copy of all states", false, any, {}, {}, replicas<0>},
      {"zero-1",
       "ZeRO-1",
       "optimizer states are sharded, parameters and gradients are not",
       false,
       any,
       {},
       {},
       replicas<1>},
      {"zero-2",
       "ZeRO-2",
       "optimizer states and gradients are sharded, parameters are not",
       false,
       any,
       {},
       Framework::kDeepSpeed,
       replicas<2>},
      {"fsdp",
       "FSDP (ZeRO-3)",
       "states are sharded, activations are not",
       false,
       any,
       {},
       {},
       replicas<3>},
      {"tp",
       "TP in the node",
       "layers are cut over one node at most",
       false,
       any,
       {},
       {},
       tensor_parallel},
      {"pp", "PP", "each GPU holds whole layers", false, any, {}, {}, pipeline},
      {"3d",
       "TP x PP x DP",
       "each GPU holds its cut of its stage's layers",
       false,
       any,
       {},
       {},
       three_dimensions},
  };
  return all;
}

const Rung& rung_named(std::string_view id) {
  const auto found = std::ranges::find(ladder(), id, &Rung::id);
  STEPCAST_ASSERT(found != ladder().end(), "a rung of the ladder");
  return *found;
}

}  // namespace stepcast
