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

// How a world is cut: into groups of `count` ranks that lie `stride` apart.
struct Split {
  enum class By { kNothing, kDivision, kRemainder } by = By::kNothing;
  std::int64_t stride = 1;
};

// By nothing: for the whole world, or for a group that no split of nccl-tests makes.
Split split_of(const std::vector<std::int64_t>& members, std::int64_t world) {
  const auto count = static_cast<std::int64_t>(members.size());
  if (count == world || count < 2) return {};
  const std::int64_t stride = members[1] - members[0];
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i] - members[i - 1] != stride) return {};
  }
  if (stride == 1 && members.front() % count == 0) return {Split::By::kDivision, 1};
  if (stride * count == world) return {Split::By::kRemainder, stride};
  return {};
}

std::string text_of(const Split& split, std::size_t count) {
  if (split.by == Split::By::kDivision) return fmt::format("NCCL_TESTS_SPLIT=\"DIV {}\" ", count);
  if (split.by == Split::By::kNothing) return "";
  return fmt::format("NCCL_TESTS_SPLIT=\"MOD {}\" ", split.stride);
}

}  // namespace

std::vector<std::vector<std::int64_t>> groups_at_once(const std::vector<std::int64_t>& members,
                                                      std::int64_t world) {
  std::vector<std::vector<std::int64_t>> out{members};
  const Split split = split_of(members, world);
  if (split.by == Split::By::kNothing) return out;
  const auto count = static_cast<std::int64_t>(members.size());
  const bool side_by_side = split.by == Split::By::kDivision;
  for (std::int64_t g = 0; g < world / count; ++g) {
    const std::int64_t first = side_by_side ? g * count : g;
    if (first == members.front()) continue;
    std::vector<std::int64_t>& group = out.emplace_back();
    for (std::int64_t i = 0; i < count; ++i) group.push_back(first + i * split.stride);
  }
  return out;
}

std::string nccl_command(const CollectiveThreshold& threshold, DataType type,
                         const std::vector<std::int64_t>& members, std::int64_t world,
                         std::int64_t gpus_per_node) {
  const std::string split = text_of(split_of(members, world), members.size());
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
