// SPDX-License-Identifier: Apache-2.0
// A good layout of a branch in a millisecond, for searches that must answer before they know all:
// the branch's first legal layout, moved key by key for as long as its bound falls.
#pragma once

#include <optional>

#include "plan/bounded_layout.h"

namespace stepcast {

class BoundMaker;
class Space;
struct Scenario;

class BranchDescent {
 public:
  // `bounds` bounds the layout that stands in `scenario`: one thread's scratch.
  BranchDescent(const Space& space, Scenario& scenario, BoundMaker& bounds, ByteCount memory_limit)
      : space_(space), scenario_(scenario), bounds_(bounds), memory_limit_(memory_limit) {}

  // Gives nothing where no layout is legal among the first nodes below the branch. The layout may
  // still need more than the limit of memory: then no move was found that needs less.
  std::optional<BoundedLayout> descend(const LayoutChoice& branch);

 private:
  std::optional<BoundedLayout> first_legal(const LayoutChoice& branch);
  bool improve(BoundedLayout& layout, std::size_t level);
  bool is_better(const BoundedLayout& one, const BoundedLayout& other) const;
  BoundedLayout bounded(const LayoutChoice& choice);

  const Space& space_;
  Scenario& scenario_;
  BoundMaker& bounds_;
  ByteCount memory_limit_;
};

}  // namespace stepcast
