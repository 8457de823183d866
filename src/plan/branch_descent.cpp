// SPDX-License-Identifier: Apache-2.0
#include "plan/branch_descent.h"

#include <algorithm>

#include "plan/bound.h"
#include "plan/space.h"

namespace stepcast {
namespace {

constexpr int kNodes = 256;  // that are walked for the first legal layout
constexpr int kSweeps = 4;   // over all keys of the branch

}  // namespace

// A layout that does not fit is judged by its memory, one that fits by its time. A bound of nothing
// says nothing, so such a layout is no better than any other.
bool BranchDescent::is_better(const BoundedLayout& one, const BoundedLayout& other) const {
  if (one.bound_s <= 0) return false;
  const ByteCount a = std::max(one.device_bytes, memory_limit_);
  const ByteCount b = std::max(other.device_bytes, memory_limit_);
  return a != b ? a < b : one.bound_s < other.bound_s;
}

BoundedLayout BranchDescent::bounded(const LayoutChoice& choice) {
  const Bound bound = bounds_.bound();
  return {bound.time_s, bound.device_bytes, choice};
}

std::optional<BoundedLayout> BranchDescent::first_legal(const LayoutChoice& branch) {
  std::optional<BoundedLayout> out;
  int nodes = 0;
  space_.walk(
      branch, scenario_,
      [&](const LayoutChoice& choice) {
        if (!out) out = bounded(choice);
      },
      [&] { return out || ++nodes > kNodes; });
  return out;
}

bool BranchDescent::improve(BoundedLayout& layout, std::size_t level) {
  const BoundedLayout before = layout;
  for (const std::int64_t value : space_.values(level, before.choice, scenario_)) {
    BoundedLayout other = before;
    other.choice.values[level] = static_cast<std::int32_t>(value);
    if (other.choice == before.choice) continue;
    if (!space_.objections(other.choice, scenario_).empty()) continue;
    other = bounded(other.choice);
    if (is_better(other, layout)) layout = other;
  }
  return layout.choice != before.choice;
}

std::optional<BoundedLayout> BranchDescent::descend(const LayoutChoice& branch) {
  auto layout = first_legal(branch);
  if (!layout) return layout;
  const std::size_t levels = space_.dimensions().size();
  const auto set = std::ranges::find(branch.values, LayoutChoice::kUnset);
  const auto first = static_cast<std::size_t>(set - branch.values.begin());
  bool moved = true;
  for (int sweep = 0; moved && sweep < kSweeps; ++sweep) {
    moved = false;
    for (std::size_t level = first; level < levels; ++level) {
      moved = improve(*layout, level) || moved;
    }
  }
  return layout;
}

}  // namespace stepcast
