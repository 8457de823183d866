// SPDX-License-Identifier: Apache-2.0
#include "memory/device_footprint.h"

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

}  // namespace

ByteCount reserved_bytes(const Scenario& scenario, ByteCount allocated) {
  if (scenario.cluster.spec.accelerator.is_cpu()) return allocated;
  const auto grown = static_cast<ByteCount>(static_cast<double>(allocated) * (1 + kFragmentation));
  return pooled_bytes(grown);
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
  const auto communicator = [&](std::int64_t reach) {
    return reach <= scenario.cluster.spec.gpus_per_node ? kLocalCommunicator : kNetworkCommunicator;
  };
  for (const std::int64_t size : {layout.tp, layout.cp * layout.dp, layout.pp}) {
    span *= size;
    if (size > 1) bytes += communicator(span);
  }
  // Ranks that share a sequence have one of their own, and so have the copies of sharded states.
  if (layout.cp > 1 && layout.dp > 1) bytes += communicator(layout.tp * layout.cp);
  if (layout.shard_group > 0) bytes += communicator(layout.tp * layout.cp * layout.dp);
  return bytes;
}

}  // namespace stepcast
