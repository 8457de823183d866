// SPDX-License-Identifier: Apache-2.0
// Opens nodes of the space's tree: what one thread of a search does.
#pragma once

#include <optional>
#include <vector>

#include "plan/bound.h"
#include "plan/bounded_layout.h"
#include "plan/pricing_by_framework.h"
#include "plan/ranking.h"
#include "plan/subtree_bounds.h"

namespace stepcast {

// A layout, or a part of one that stands for all its completions.
struct Node : BoundedLayout {
  double any_time_s = 0;  // bounds completions that do not fit, too
  std::size_t depth = 0;  // of a part: into SubtreeBounds::depths()
  bool is_layout = false;
  // It is known of a layout once it is asked for, without the memory of its forecast.
  mutable std::optional<Simplicity> simplicity = {};
};

// The nodes right behind another one, and what the rules said on the way.
struct Expansion {
  std::vector<Node> nodes;
  SpaceCount count;
  bool whole = false;  // it was not cut short
};

class TreeWorker {
 public:
  TreeWorker(const Space& space, const PricingByFramework& pricing, ByteCount memory_limit)
      : space_(space),
        scenario_(space.base()),
        bounds_(scenario_, pricing),
        subtrees_(space, scenario_, bounds_, memory_limit) {}
  TreeWorker(const TreeWorker&) = delete;
  TreeWorker& operator=(const TreeWorker&) = delete;

  // Gives the partial layouts of the first depth behind a branch, for as long as `ends` does not
  // say so.
  Expansion expand_branch(const LayoutChoice& branch, const Space::Ends& ends);
  // Gives what is behind a partial layout.
  Expansion expand(const Node& node);

  Scenario& scenario() { return scenario_; }  // scratch
  BoundMaker& bounds() { return bounds_; }    // bounds the layout that stands in it

 private:
  Node bounded(const LayoutChoice& part, std::size_t depth);

  const Space& space_;
  Scenario scenario_;
  BoundMaker bounds_;
  SubtreeBounds subtrees_;
};

}  // namespace stepcast
