// SPDX-License-Identifier: Apache-2.0
// Bounds of partial layouts: no completion of one is faster or smaller, so whole subtrees of the
// space fall without a look at their layouts (docs/design/012-search-of-layouts.md).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "plan/space.h"

namespace stepcast {

class BoundMaker;

// A layout that needs more than the limit by no more than this is worth naming.
inline constexpr double kNearMiss = 1.25;

struct SubtreeBound {
  double time_s = 0;           // of completions that fit; of any, if none does
  double any_time_s = 0;       // of those that do not fit, too
  ByteCount device_bytes = 0;  // of the smallest completion
};

// The passes of a partial layout with a schedule cost what its blocks cost. Few of the keys behind
// the schedule decide those, and in few ways (its cases): a subtree's bound is the least of them.
class SubtreeBounds {
 public:
  // `bounds` bounds the layout that stands in `scenario`: one thread's scratch.
  SubtreeBounds(const Space& space, Scenario& scenario, BoundMaker& bounds, ByteCount memory_limit);

  // Depths of the tree at which partial layouts are bounded, the least first: behind the schedule,
  // behind what is recomputed, and behind the states that are sharded.
  const std::vector<std::size_t>& depths() const { return depths_; }

  // Makes the cases of a partial layout of one of these depths, and of all that have its schedule.
  void enter(const LayoutChoice& partial);
  // Bounds that one, or another one of them.
  SubtreeBound bound(const LayoutChoice& partial);

 private:
  struct Case {
    LayoutChoice choice;  // with the keys that decide its blocks
    Settings settings;
    FrameworkRules rules;
    ByteCount framework_bytes = 0;
  };
  // One for all that share their blocks, with the least that the framework needs for one of them.
  struct Kind {
    LayoutChoice choice;
    ByteCount framework_bytes = 0;
  };
  const std::vector<Kind>& kinds_of(const LayoutChoice& degrees);
  ByteCount least_held(const LayoutChoice& pipeline);
  bool agree(const LayoutChoice& partial, const Case& one) const;

  const Space& space_;
  Scenario& scenario_;
  BoundMaker& bounds_;
  ByteCount memory_limit_;
  std::size_t degrees_;
  std::vector<std::size_t> depths_;
  LaterLevels later_;
  LaterLevels later_of_states_;
  std::optional<std::size_t> recompute_;         // its level, if it is open
  std::optional<std::size_t> pipeline_overlap_;  // likewise
  std::map<LayoutChoice, std::vector<Kind>> known_;
  bool is_entered_ = false;
  LayoutChoice entered_;
  ByteCount too_much_ = 0;   // that each of its completions holds; 0: it may fit, or nearly
  std::vector<Case> cases_;  // of it
};

}  // namespace stepcast
