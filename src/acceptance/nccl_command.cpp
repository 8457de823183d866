// SPDX-License-Identifier: Apache-2.0
// nccl-tests' programs and flags (NVIDIA/nccl-tests, README.md). NCCL_TESTS_SPLIT cuts the world
// into groups that run at once, as those of a layout do.
#include <fmt/format.h>

#include "acceptance/thresholds.h"

namespace stepcast {
namespace {

const char* program_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce_perf";
    case CollectiveKind::kAllGather:
      return "all_gather_perf";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter_perf";
    case CollectiveKind::kAllToAll:
      return "alltoall_perf";
    case CollectiveKind::kBroadcast:
      return "broadcast_perf";
    case CollectiveKind::kSendReceive:
      return "sendrecv_perf";
  }
  return "";
}

const char* type_of(DataType type) {
  if (type == DataType::kBf16) return "bfloat16";
  if (type == DataType::kFp16) return "half";
  return type == DataType::kFp8 ? "uint8" : "float";
}

// "" for the whole world, or for a group that no split of nccl-tests makes.
std::string split_of(const std::vector<std::int64_t>& members, std::int64_t world) {
  const auto count = static_cast<std::int64_t>(members.size());
  if (count == world || count < 2) return "";
  const std::int64_t stride = members[1] - members[0];
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i] - members[i - 1] != stride) return "";
  }
  if (stride == 1 && members.front() % count == 0) {
    return fmt::format("NCCL_TESTS_SPLIT=\"DIV {}\" ", count);
  }
  if (stride * count == world) return fmt::format("NCCL_TESTS_SPLIT=\"MOD {}\" ", stride);
  return "";
}

}  // namespace

std::string nccl_command(const CollectiveThreshold& threshold, DataType type,
                         const std::vector<std::int64_t>& members, std::int64_t world,
                         std::int64_t gpus_per_node) {
  const std::string split = split_of(members, world);
  // A group that no split makes is measured alone, by as many ranks.
  const bool alone = split.empty() && threshold.ranks != world;
  const std::int64_t ranks = alone ? threshold.ranks : world;
  const std::int64_t each = alone ? (threshold.ranks + threshold.nodes - 1) / threshold.nodes
                                  : std::min(gpus_per_node, world);
  return fmt::format("{}mpirun -np {} --map-by ppr:{}:node {} -b {} -e {} -g 1 -d {}", split, ranks,
                     each, program_of(threshold.kind), threshold.bytes, threshold.bytes,
                     type_of(type));
}

}  // namespace stepcast
