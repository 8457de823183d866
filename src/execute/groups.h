// SPDX-License-Identifier: Apache-2.0
// The communicators of a rank: one per group kind and stream, because what different streams start
// keeps no common order. Transfers between stages use the world.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "layout/rank_grid.h"
#include "program/program.h"

namespace stepcast {

class Groups {
 public:
  // Called by all ranks of `world`. Null: traffic is left out, every group is alone.
  Groups(const Program& program, const RankGrid& grid, Communicator* world, RankId rank);

  // Null where the rank is alone.
  Communicator* find(GroupKind kind, Stream stream) const;
  Communicator* world() const { return world_; }

 private:
  Communicator* world_;
  std::map<std::pair<GroupKind, Stream>, std::unique_ptr<Communicator>> groups_;
};

}  // namespace stepcast
