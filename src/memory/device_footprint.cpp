// SPDX-License-Identifier: Apache-2.0
#include "memory/device_footprint.h"

#include <algorithm>

#include "layout/axis_group.h"

namespace stepcast {
namespace {

constexpr ByteCount kMiB = 1 << 20;

// Blocks above 10 MiB are rounded to 2 MiB, and remainders of split blocks stay behind. Margins of
// 3 to 10 % between reserved and allocated are usual; this is their middle.
constexpr double kFragmentation = 0.05;

// PyTorch's kernels and cuBLAS loaded lazily on an A100: 0.47 GiB (ml-engineering,
// training/performance, "GPU memory").
constexpr ByteCount kContext = 480 * kMiB;

// A communicator of 2 to 8 ranks takes 544 to 688 MB (NVIDIA/nccl issue 964): 10 MiB per channel
// and connection, linear in channels; across nodes the rings use fewer.
constexpr ByteCount kLocalCommunicator = 544 * kMiB;
constexpr ByteCount kNetworkCommunicator = 320 * kMiB;

// DeepEP and HybridEP move tokens through buffers of their own.
bool exchanges_by_nccl(const Scenario& scenario) {
  if (!scenario.model.moe) return false;
  const MoeDispatcher dispatcher = scenario.model.moe->dispatcher;
  return dispatcher == MoeDispatcher::kAllToAll || dispatcher == MoeDispatcher::kAllGather;
}

}  // namespace

ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated) {
  if (scenario.cluster.spec.accelerator.is_cpu()) return allocated;
  const auto grown = static_cast<ByteCount>(static_cast<double>(allocated) * (1 + kFragmentation));
  return pooled_bytes(grown);
}

ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated, ByteCount others,
                         ByteCount buffers) {
  const ByteCount needed = reserved_bytes(scenario, allocated);
  const FrameworkRules& rules = scenario.rules;
  if (!rules.copies_flat_gradients && !rules.keeps_half_gradients) return needed;
  const ByteCount kept = reserved_bytes(scenario, others) + pooled_bytes(buffers);
  const ByteCount room = scenario.cluster.spec.accelerator.memory - framework_bytes(scenario);
  return std::max(needed, std::min(kept, room));
}

ByteCount pooled_bytes(ByteCount allocated) {
  return (allocated + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

ByteCount framework_bytes(const Scenario& scenario, bool alone) {
  if (scenario.cluster.spec.accelerator.is_cpu()) return 0;
  if (alone) return kContext;
  const Layout& layout = scenario.layout;
  ByteCount bytes = kContext;
  std::int64_t span = 1;  // ranks from one member of a group to the last
  const auto add = [&](std::int64_t reach) {
    const bool local = reach <= scenario.cluster.spec.gpus_per_node;
    bytes += local ? kLocalCommunicator : kNetworkCommunicator;
  };
  std::int64_t axes = 0;
  for (const std::int64_t size : {layout.tp, layout.cp * layout.dp, layout.pp}) {
    span *= size;
    if (size == 1) continue;
    ++axes;
    add(span);
  }
  // Ranks that share a sequence have one of their own, and so have the copies of sharded states.
  if (layout.cp > 1 && layout.dp > 1) add(layout.tp * layout.cp);
  if (layout.shard_group > 0) add(layout.tp * layout.cp * layout.dp);
  if (layout.ep > 1) {
    const std::int64_t holders = size_of(AxisGroup::kExpertData, layout);
    if (exchanges_by_nccl(scenario)) add(size_of(AxisGroup::kTensorExpert, layout));
    if (layout.etp > 1) add(layout.etp);
    if (holders > 1) add(layout.tp * layout.cp * layout.dp);
  }
  // The norm of all gradients is summed over the ranks that hold different ones (update_step.cpp),
  // and their group is none of the others where it has several axes.
  const bool sums_norm = scenario.training.grad_clip != GradClip::kNone;
  if (sums_norm && (layout.zero >= 1 ? axes > 1 : layout.tp > 1 && layout.pp > 1)) add(span);
  return bytes;
}

}  // namespace stepcast
