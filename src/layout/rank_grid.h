// SPDX-License-Identifier: Apache-2.0
// Ranks as points of a grid tp x cp x dp x pp in the framework's order (default tp-cp-ep-dp-pp, the
// first dimension fastest), and the process groups that follow.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/id.h"
#include "layout/scenario.h"

namespace stepcast {

enum class GroupKind {
  kTensor,     // tp
  kContext,    // cp
  kData,       // dp x cp: the ranks that hold the same (shard of the) dense parameters
  kPipeline,   // pp
  kEmbedding,  // first and last stage of one pipeline
  kModel,      // tp x pp: the ranks that share one replica (gradient norm)
  kWorld,
};
inline constexpr int kGroupKinds = 7;
const char* name_of(GroupKind kind);

struct GridPoint {
  std::int32_t tp = 0;
  std::int32_t cp = 0;
  std::int32_t dp = 0;
  std::int32_t pp = 0;
};

class RankGrid {
 public:
  explicit RankGrid(const Layout& layout);

  std::int64_t size() const { return size_; }
  GridPoint point(RankId rank) const;
  RankId rank(GridPoint point) const;

  std::int64_t group_size(GroupKind kind) const;
  std::int64_t group_count(GroupKind kind) const;
  // Dense index of the rank's group, counting up with the groups' lowest members. A rank of a
  // middle stage is in no embedding group: -1, and no members.
  std::int32_t group_of(GroupKind kind, RankId rank) const;
  std::vector<RankId> members(GroupKind kind, RankId rank) const;  // in group order, own included

 private:
  std::array<std::int64_t, 4> extent_{};  // tp, cp, dp, pp
  std::array<std::int64_t, 4> stride_{};
  std::int64_t size_ = 1;
};

}  // namespace stepcast
