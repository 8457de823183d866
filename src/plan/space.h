// SPDX-License-Identifier: Apache-2.0
// The layouts that a scenario leaves open, as a tree: one level per dimension, in the order of
// layout_dimensions(). A key that the scenario states is fixed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layout/findings.h"
#include "layout/scenario_input.h"
#include "plan/layout_choice.h"
#include "plan/layout_dimension.h"
#include "plan/space_count.h"
#include "plan/value_range.h"

namespace stepcast {

// Levels of the tree that lie behind a prefix, with others before or between them that stay open.
struct LaterLevels {
  struct Level {
    std::size_t level;
    std::int64_t most;  // its values are tried up to this one, also those outside a range
  };
  std::vector<Level> levels;
  KeyPaths open;  // that rules may not read
};

class Space {
 public:
  // Makes the space of a scenario that was read with open_paths(). A key that the scenario states
  // outside its range leaves no layout; the rule names it.
  explicit Space(OpenScenario open, const std::vector<ValueRange>& ranges = {});

  const Scenario& base() const { return open_.scenario; }
  const std::vector<const LayoutDimension*>& dimensions() const { return dimensions_; }

  // The number of all combinations of values with tp*cp*pp*dp = GPUs, as planners count their
  // spaces: with those that the rules forbid, and each as often as it occurs.
  double combinations() const { return combinations_; }

  // Prefixes from which the tree can be walked independently, in order; what is refused before them
  // goes into `count`.
  std::vector<LayoutChoice> branches(SpaceCount& count) const;

  // Walks legal layouts below a prefix, in order. `scenario` is scratch: a copy of base(), in which
  // the visited layout stands.
  using Visit = std::function<void(const LayoutChoice&)>;
  // `ends`, where there is one, is asked before each node: the walk leaves off where it says so.
  using Ends = std::function<bool()>;
  SpaceCount walk(const LayoutChoice& prefix, Scenario& scenario, const Visit& visit,
                  const Ends& ends = {}) const;

  // Walks prefixes of this depth below one, in order: partial layouts, which are counted as no
  // layouts. One that is deeper already is visited as it is.
  SpaceCount walk_to(std::size_t depth, const LayoutChoice& prefix, Scenario& scenario,
                     const Visit& visit, const Ends& ends = {}) const;
  // How many levels are before this one of layout_dimensions().
  std::size_t depth_before(int level) const;

  // Levels behind prefixes of this depth, by LayoutDimension::level, as far as they are open.
  LaterLevels later_levels(std::size_t depth, std::vector<LaterLevels::Level> levels) const;
  // Sets them behind a prefix in all ways that no rule refuses which reads only what is set then.
  // Each completion of the prefix, with values as far as `most`, agrees with one of them.
  std::vector<LayoutChoice> settings_of(const LaterLevels& later, const LayoutChoice& prefix,
                                        Scenario& scenario) const;

  // All combinations behind these prefixes, as combinations() counts them.
  double combinations_behind(const std::vector<LayoutChoice>& prefixes) const;

  // Writes a layout, or a part of one, into a copy of base().
  void put(const LayoutChoice& choice, Scenario& scenario) const;

  // Value that the dimension of this level would have in the layout if it were left out. `scenario`
  // is scratch.
  std::int64_t default_of(std::size_t level, const LayoutChoice& choice, Scenario& scenario) const;

  // Values of the dimension of this level that a forecast of the layout tells apart, whatever rules
  // say of them.
  // `scenario` is scratch.
  KeySearch::Values values(std::size_t level, const LayoutChoice& choice, Scenario& scenario) const;

  // All values of the dimension of this level behind the layout. `scenario` is scratch.
  KeySearch::Values all_values(std::size_t level, const LayoutChoice& choice,
                               Scenario& scenario) const;

  // The choice that a resolved layout is; nothing where the space does not have it. `scenario` is
  // scratch, in which it then stands.
  std::optional<LayoutChoice> choice_of(const Layout& layout, Scenario& scenario) const;

  // Objections of the rules to a layout or prefix; none: legal so far.
  Errors objections(const LayoutChoice& choice, Scenario& scenario) const;

 private:
  struct Walk;
  std::size_t depth_of(const LayoutChoice& prefix) const;
  Stated stated_by(const LayoutChoice& choice) const;
  Errors check(const Scenario& scenario, const Stated& stated, const KeyPaths& open) const;
  std::size_t follow(Walk& walk, std::size_t level, KeySearch::Values& values) const;
  void set(Walk& walk, std::size_t level, std::int64_t value) const;
  void descend(Walk& walk, std::size_t level) const;
  struct Counting;
  void set_later(const LaterLevels& later, std::size_t index, Walk& walk,
                 std::vector<LayoutChoice>& out) const;
  KeyPaths paths_of(const std::vector<bool>& is_open) const;
  double combinations_of_all() const;
  double count(Counting& counting, std::size_t level) const;
  void restrict_to(const ValueRange& range);
  bool admits(std::size_t level, std::int64_t value) const {
    return least_[level] <= value && value <= most_[level];
  }

  OpenScenario open_;
  std::vector<const LayoutDimension*> dimensions_;  // the open ones
  std::vector<KeyPaths> open_behind_;               // by depth: paths that rules may not read
  std::vector<std::int64_t> least_, most_;          // by level
  Errors contradictions_;                           // between ranges and what is stated
  double combinations_ = 0;
};

// Keys that a search may vary, and what follows from them: for read_open_scenario().
std::vector<std::string> open_paths(const Stated& stated);

}  // namespace stepcast
