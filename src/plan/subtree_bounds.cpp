// SPDX-License-Identifier: Apache-2.0
#include "plan/subtree_bounds.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "layout/key_search.h"
#include "memory/device_footprint.h"
#include "plan/bound.h"

namespace stepcast {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// Blocks depend on these keys behind the schedule. They know what kind of recomputation there is,
// which the first values say; how many layers are recomputed is no matter of a block.
std::vector<LaterLevels::Level> levels_of_blocks() {
  std::vector<LaterLevels::Level> out;
  const auto add = [&](const KeySearch& key, std::int64_t most) {
    out.push_back({static_cast<std::size_t>(key.level), most});
  };
  add(kSearchRecompute, static_cast<std::int64_t>(RecomputeMode::kFull));
  for (const KeySearch* key : {&kSearchSequenceParallel, &kSearchZero, &kSearchCpMethod,
                               &kSearchShardGroup, &kSearchOrder, &kSearchOverlapTp}) {
    add(*key, kAll);
  }
  return out;
}

// A stage holds states by these.
std::vector<LaterLevels::Level> levels_of_states() {
  return {{static_cast<std::size_t>(kSearchZero.level), kAll},
          {static_cast<std::size_t>(kSearchShardGroup.level), kAll}};
}

std::optional<std::size_t> level_of(const KeySearch& key, const Space& space) {
  const std::size_t at = space.depth_before(key.level);
  if (at == space.dimensions().size() || space.dimensions()[at]->level != key.level) return {};
  return at;
}

}  // namespace

SubtreeBounds::SubtreeBounds(const Space& space, Scenario& scenario, BoundMaker& bounds,
                             ByteCount memory_limit)
    : space_(space),
      scenario_(scenario),
      bounds_(bounds),
      memory_limit_(memory_limit),
      degrees_(space.depth_before(kSearchSchedule.level)),
      depths_{space.depth_before(kSearchRecompute.level),
              space.depth_before(kSearchSequenceParallel.level),
              space.depth_before(kSearchZero.level + 1)},
      later_(space.later_levels(degrees_, levels_of_blocks())),
      later_of_states_(space.later_levels(depths_.front(), levels_of_states())),
      recompute_(level_of(kSearchRecompute, space)),
      pipeline_overlap_(level_of(kSearchOverlapPp, space)) {}

const std::vector<SubtreeBounds::Kind>& SubtreeBounds::kinds_of(const LayoutChoice& degrees) {
  const auto [found, fresh] = known_.try_emplace(degrees);
  std::vector<Kind>& out = found->second;
  if (!fresh) return out;
  // Partial layouts of the last depth are told apart, and what they hold.
  using Told = std::tuple<LayoutChoice, std::int64_t, std::vector<const BlockSet*>>;
  std::vector<Told> seen;
  for (const LayoutChoice& choice : space_.settings_of(later_, degrees, scenario_)) {
    space_.put(choice, scenario_);
    LayoutChoice partial = choice;
    std::fill(partial.values.begin() + static_cast<std::ptrdiff_t>(depths_.back()),
              partial.values.end(), LayoutChoice::kUnset);
    const ByteCount bytes = framework_bytes(scenario_);
    Told told{partial, scenario_.layout.shard_group, bounds_.blocks_by_stage()};
    const auto at = std::ranges::find(seen, told);
    if (at == seen.end()) {
      seen.push_back(std::move(told));
      out.push_back({choice, bytes});
    } else {
      Kind& own = out[static_cast<std::size_t>(at - seen.begin())];
      own.framework_bytes = std::min(own.framework_bytes, bytes);
    }
  }
  return out;
}

// The states of some completion, and no more than of any other one.
ByteCount SubtreeBounds::least_held(const LayoutChoice& pipeline) {
  ByteCount out = std::numeric_limits<ByteCount>::max();
  for (const LayoutChoice& choice : space_.settings_of(later_of_states_, pipeline, scenario_)) {
    space_.put(choice, scenario_);
    out = std::min(out, bounds_.held());
  }
  return out == std::numeric_limits<ByteCount>::max() ? 0 : out;
}

void SubtreeBounds::enter(const LayoutChoice& partial) {
  LayoutChoice pipeline = partial;
  std::fill(pipeline.values.begin() + static_cast<std::ptrdiff_t>(depths_.front()),
            pipeline.values.end(), LayoutChoice::kUnset);
  if (is_entered_ && pipeline == entered_) return;
  is_entered_ = true;
  entered_ = pipeline;
  LayoutChoice degrees = pipeline;
  std::fill(degrees.values.begin() + static_cast<std::ptrdiff_t>(degrees_), degrees.values.end(),
            LayoutChoice::kUnset);
  cases_.clear();
  // Blocks need not be priced where states alone are far too large.
  const ByteCount held = least_held(pipeline);
  const bool is_hopeless =
      static_cast<double>(held) > kNearMiss * static_cast<double>(memory_limit_);
  too_much_ = is_hopeless ? held : 0;
  if (is_hopeless) return;
  for (const Kind& kind : kinds_of(degrees)) {
    Case one{kind.choice, {}, {}, kind.framework_bytes};
    std::copy_n(pipeline.values.begin(), depths_.front(), one.choice.values.begin());
    space_.put(one.choice, scenario_);
    // Transfers that nothing waits for bound those that are waited for.
    if (pipeline_overlap_) scenario_.layout.overlap.pp = true;
    one.settings = scenario_;
    one.rules = scenario_.rules;
    cases_.push_back(std::move(one));
  }
}

bool SubtreeBounds::agree(const LayoutChoice& partial, const Case& one) const {
  for (const LaterLevels::Level& later : later_.levels) {
    const std::int32_t value = partial.values[later.level];
    if (value == LayoutChoice::kUnset) continue;
    if (std::min<std::int64_t>(value, later.most) != one.choice.values[later.level]) return false;
  }
  return true;
}

SubtreeBound SubtreeBounds::bound(const LayoutChoice& partial) {
  if (too_much_ > 0) return {0, 0, too_much_};
  constexpr double kNever = std::numeric_limits<double>::infinity();
  SubtreeBound out{kNever, kNever, std::numeric_limits<ByteCount>::max()};
  const bool any_recompute = recompute_ && partial.values[*recompute_] == LayoutChoice::kUnset;
  for (const Case& one : cases_) {
    if (!agree(partial, one)) continue;
    static_cast<Settings&>(scenario_) = one.settings;
    scenario_.rules = one.rules;
    if (recompute_ && !any_recompute) {
      space_.dimensions()[*recompute_]->put(scenario_, partial.values[*recompute_]);
    }
    const Bound bound = bounds_.relaxed(any_recompute);
    const ByteCount bytes = bound.time_s > 0 ? bound.device_bytes + one.framework_bytes : 0;
    if (bytes <= memory_limit_) out.time_s = std::min(out.time_s, bound.time_s);
    out.any_time_s = std::min(out.any_time_s, bound.time_s);
    out.device_bytes = std::min(out.device_bytes, bytes);
  }
  if (out.any_time_s == kNever) return {};  // the rules refuse all of it, and name why
  if (out.time_s == kNever) out.time_s = out.any_time_s;
  return out;
}

}  // namespace stepcast
