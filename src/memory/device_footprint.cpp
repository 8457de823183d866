// SPDX-License-Identifier: Apache-2.0
#include "memory/device_footprint.h"

#include <algorithm>
#include <vector>

#include "layout/axis_group.h"
#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "layout/training.h"
#include "model/model.h"

namespace stepcast {
namespace {

constexpr ByteCount kMiB = 1 << 20;

// Blocks above 10 MiB are rounded to 2 MiB, and remainders of split blocks stay behind. Margins of
// 3 to 10 % between reserved and allocated are usual; this is their middle.
constexpr double kFragmentation = 0.05;

// CUDA's context with the libraries' kernels, loaded lazily: 582 MiB beside this project's executor
// and 619 MiB in PyTorch 2.11 before its first product, on an H100 and an H200 with CUDA 13.0
// (docs/validation-gpu.md). On an A100 in 2023 it was 480 MiB (ml-engineering,
// training/performance, "GPU memory").
constexpr ByteCount kContext = 582 * kMiB;

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

// HybridEP's registered buffers: what arrives for the experts, and what they send back, each with
// room for all tokens of all ranks of the group in 16 bits, and the routing weights in fp32 beside
// (deepseek-ai/DeepEP, branch hybrid-ep: allocate_dispatch_buffers, allocate_combine_buffers).
ByteCount hybrid_ep_buffers(const Scenario& scenario, std::int64_t ranks) {
  const Layout& layout = scenario.layout;
  const auto& moe = scenario.model.moe;
  const std::int64_t sharing = layout.cp * (layout.sequence_parallel ? layout.tp : 1);
  const std::int64_t tokens =
      layout.micro_batch * scenario.training.sequence_length / sharing * ranks;
  const std::int64_t experts = moe->experts / layout.ep;
  return 2 * tokens * (2 * scenario.model.hidden + 4 * experts * ranks);
}

// DeepEP's buffers (deepseek-ai/DeepEP, csrc/config.hpp: get_nvl_buffer_size_hint and
// get_rdma_buffer_size_hint, with the settings of get_dispatch_config in deep_ep/buffer.py): each
// channel, of two SMs (10 by default), has room for so many tokens of every GPU of a node, and for
// 128 of every node, to send and to receive. A token comes with its source, and with room for 128
// choices, their weights and as many scales.
ByteCount deep_ep_buffers(const Scenario& scenario, std::int64_t ranks) {
  constexpr std::int64_t kUsualChannels = 10, kPeers = 8, kFromNode = 128;
  const std::int64_t sms = scenario.model.moe->dispatcher_sms;
  const std::int64_t channels = sms > 0 ? std::max<std::int64_t>(sms / 2, 1) : kUsualChannels;
  constexpr std::int64_t kBeside = 8 + 128 * (8 + 4 + 4);
  const std::int64_t from_gpu = ranks <= 8     ? 256
                                : ranks <= 64  ? 288
                                : ranks <= 96  ? 480
                                : ranks <= 128 ? 560
                                               : 720;
  const ByteCount token = 2 * scenario.model.hidden + kBeside;
  const std::int64_t nodes = ranks > kPeers ? (ranks + kPeers - 1) / kPeers : 0;
  return channels * token * (std::min(ranks, kPeers) * from_gpu + 2 * nodes * kFromNode);
}

ByteCount exchange_buffers(const Scenario& scenario) {
  const std::int64_t ranks = scenario.layout.ep * scenario.layout.etp;
  if (!scenario.model.moe || ranks == 1 || exchanges_by_nccl(scenario)) return 0;
  return scenario.model.moe->dispatcher == MoeDispatcher::kHybridEp
             ? hybrid_ep_buffers(scenario, ranks)
             : deep_ep_buffers(scenario, ranks);
}

// Groups for which this rank has communicators.
std::vector<AxisGroup> communicators(const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  std::vector<AxisGroup> out;
  const auto add = [&](AxisGroup group, bool wanted = true) {
    if (wanted && size_of(group, layout) > 1) out.push_back(group);
  };
  add(AxisGroup::kTensor);
  add(AxisGroup::kDataShard);  // all of dp, unless states have copies
  add(AxisGroup::kPipeline);
  const bool one_axis = out.size() <= 1;
  add(AxisGroup::kDataCopies);
  add(AxisGroup::kContext, layout.dp > 1);  // otherwise it is dp's
  if (layout.ep > 1) {
    add(AxisGroup::kTensorExpert, exchanges_by_nccl(scenario));
    add(AxisGroup::kExpertTensor);
    add(AxisGroup::kExpertData);
  }
  // The norm of all gradients is summed over the ranks that hold different ones (update_step.cpp),
  // and their group is none of the others where it has several axes.
  if (scenario.training.grad_clip == GradClip::kNone) return out;
  if (layout.zero >= 1) {
    add(AxisGroup::kWorld, !one_axis);
  } else {
    add(AxisGroup::kModel, layout.tp > 1 && layout.pp > 1);
  }
  return out;
}

}  // namespace

ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated) {
  if (scenario.cluster.spec.accelerator.is_cpu()) return allocated;
  const auto grown = static_cast<ByteCount>(static_cast<double>(allocated) * (1 + kFragmentation));
  return pooled_bytes(grown);
}

ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated, ByteCount others,
                         ByteCount buffers, ByteCount device_memory) {
  const ByteCount needed = reserved_bytes(scenario, allocated);
  const FrameworkRules& rules = scenario.rules;
  const bool has_pools =
      rules.copies_flat_gradients || rules.keeps_half_gradients || rules.gradients_by_unit;
  if (!has_pools) return needed;
  const ByteCount kept = reserved_bytes(scenario, others) + pooled_bytes(buffers);
  const ByteCount room = device_memory - framework_bytes(scenario);
  return std::max(needed, std::min(kept, room));
}

ByteCount pooled_bytes(ByteCount allocated) {
  return (allocated + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
}

ByteCount framework_bytes(const Scenario& scenario, bool alone) {
  if (scenario.cluster.spec.accelerator.is_cpu()) return 0;
  if (alone) return kContext;
  const RankGrid grid(scenario.layout);
  ByteCount bytes = kContext + exchange_buffers(scenario);
  for (const AxisGroup group : communicators(scenario)) {
    const bool local = grid.reach(group) <= scenario.cluster.spec.gpus_per_node;
    bytes += local ? kLocalCommunicator : kNetworkCommunicator;
  }
  return bytes;
}

}  // namespace stepcast
