// SPDX-License-Identifier: Apache-2.0
#include "plan/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "core/assert.h"
#include "core/work_limits.h"
#include "layout/legality.h"
#include "plan/launchable.h"

namespace stepcast {
namespace {

constexpr std::size_t kBranchLevels = 4;

// And the keys that a search leaves to defaults made of these.
std::vector<std::string> with_consequences(const std::vector<std::string>& paths,
                                           const Stated& stated) {
  std::vector<std::string> out = paths;
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const auto& parts = keys()[i]->made_of;
    if (stated.keys[i] || std::ranges::find_first_of(paths, parts) == paths.end()) continue;
    out.emplace_back(keys()[i]->path);
  }
  return out;
}

}  // namespace

std::vector<std::string> open_paths(const Stated& stated) {
  std::vector<std::string> paths;
  for (const LayoutDimension& dimension : layout_dimensions()) {
    if (!dimension.stated(stated)) paths.emplace_back(dimension.path);
  }
  return with_consequences(paths, stated);
}

void SpaceCount::add(const SpaceCount& more) {
  legal += more.legal;
  for (const auto& [key, rule] : more.rules) {
    const auto [found, fresh] = rules.try_emplace(key, rule);
    if (!fresh) found->second.subtrees += rule.subtrees;
  }
}

Errors refusals(const SpaceCount& count) {
  Errors out;
  for (const auto& [key, rule] : count.rules) out.push_back(rule.example);
  if (out.empty()) {
    out.push_back({ErrorCode::kBadValue, "the stated keys leave no layout to search", "", "layout",
                   "state fewer of them"});
  }
  return out;
}

Space::Space(OpenScenario open, const std::vector<ValueRange>& ranges) : open_(std::move(open)) {
  for (const LayoutDimension& dimension : layout_dimensions()) {
    if (!dimension.stated(open_.stated)) dimensions_.push_back(&dimension);
  }
  STEPCAST_ASSERT(dimensions_.size() <= LayoutChoice::kMost, "a layout choice has room for all");
  std::vector<bool> is_open(dimensions_.size(), true);
  for (std::size_t depth = 0; depth <= dimensions_.size(); ++depth) {
    open_behind_.push_back(paths_of(is_open));
    if (depth < dimensions_.size()) is_open[depth] = false;
  }
  least_.assign(dimensions_.size(), std::numeric_limits<std::int64_t>::min());
  most_.assign(dimensions_.size(), std::numeric_limits<std::int64_t>::max());
  for (const ValueRange& range : ranges) restrict_to(range);
  combinations_ = combinations_of_all();
}

KeyPaths Space::paths_of(const std::vector<bool>& is_open) const {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (is_open[i]) paths.emplace_back(dimensions_[i]->path);
  }
  return KeyPaths(with_consequences(paths, open_.stated));
}

void Space::restrict_to(const ValueRange& range) {
  const auto level = std::ranges::find(dimensions_, range.path, &LayoutDimension::path);
  if (level != dimensions_.end()) {
    const auto index = static_cast<std::size_t>(level - dimensions_.begin());
    least_[index] = std::max(least_[index], range.least);
    most_[index] = std::min(most_[index], range.most);
    return;
  }
  const auto& all = layout_dimensions();
  const auto fixed = std::ranges::find(all, range.path, &LayoutDimension::path);
  STEPCAST_ASSERT(fixed != all.end(), "a range is of a dimension");
  const std::int64_t value = fixed->of(open_.scenario.layout);
  if (range.least <= value && value <= range.most) return;
  contradictions_.push_back({ErrorCode::kIllegal,
                             fmt::format("is stated as {}", fixed->text(value)), "", range.path,
                             "left out, it is searched"});
}

Errors Space::check(const Scenario& scenario, const Stated& stated, const KeyPaths& open) const {
  Findings findings(open);
  check_legality(scenario, stated, findings);
  check_support(scenario, findings);
  if (findings.errors().empty()) check_launchable(scenario, open_.stated, findings);
  return findings.errors();
}

struct Space::Walk {
  Scenario& scenario;
  Stated stated;
  LayoutChoice choice;
  std::size_t start, stop;  // levels to descend from and to
  const Visit& visit;
  const Ends& ends;
  SpaceCount count;
};

// Sets the levels that leave no choice, from `level` on; returns the first that leaves one, with
// its values, or the level to stop at.
std::size_t Space::follow(Walk& walk, std::size_t level, KeySearch::Values& values) const {
  for (; level < walk.stop; ++level) {
    const LayoutDimension& dimension = *dimensions_[level];
    values = dimension.distinct(walk.scenario);
    std::erase_if(values, [&](std::int64_t value) { return !admits(level, value); });
    if (values.size() != 1) break;
    set(walk, level, values.front());
  }
  return level;
}

void Space::set(Walk& walk, std::size_t level, std::int64_t value) const {
  dimensions_[level]->set(walk.stated, value);
  walk.choice.values[level] = static_cast<std::int32_t>(value);
  resolve(walk.stated, walk.scenario);
}

// The levels before `level` are set, and the scenario is resolved. They are checked once those
// behind them that leave no choice are set too.
void Space::descend(Walk& walk, std::size_t level) const {
  if (walk.ends && walk.ends()) return;
  KeySearch::Values values;
  const std::size_t next = follow(walk, level, values);
  const Errors errors =
      next > walk.start ? check(walk.scenario, walk.stated, open_behind_[next]) : Errors{};
  if (!errors.empty()) {
    RuleCount& rule = walk.count.rules[errors.front().path];
    if (rule.subtrees++ == 0) rule.example = errors.front();
  } else if (next == walk.stop) {
    ++walk.count.legal;
    walk.visit(walk.choice);
  } else {
    for (const std::int64_t value : values) {
      set(walk, next, value);
      descend(walk, next + 1);
    }
  }
  for (std::size_t i = level; i < std::min(next + 1, walk.stop); ++i) {
    dimensions_[i]->set(walk.stated, std::nullopt);
    walk.choice.values[i] = LayoutChoice::kUnset;
  }
}

std::size_t Space::depth_of(const LayoutChoice& prefix) const {
  std::size_t depth = 0;
  while (depth < dimensions_.size() && prefix.values[depth] != LayoutChoice::kUnset) ++depth;
  return depth;
}

Stated Space::stated_by(const LayoutChoice& choice) const {
  Stated stated = open_.stated;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (choice.values[i] != LayoutChoice::kUnset) dimensions_[i]->set(stated, choice.values[i]);
  }
  return stated;
}

std::vector<LayoutChoice> Space::branches(SpaceCount& count) const {
  std::vector<LayoutChoice> out;
  for (const Error& error : contradictions_) count.rules[error.path] = {1, error};
  if (!contradictions_.empty()) return out;
  const Visit visit = [&](const LayoutChoice& choice) { out.push_back(choice); };
  Scenario scenario = open_.scenario;
  const Ends never;
  const std::size_t stop = std::min(kBranchLevels, dimensions_.size());
  Walk walk{scenario, open_.stated, {}, 0, stop, visit, never, {}};
  resolve(walk.stated, scenario);
  descend(walk, 0);
  walk.count.legal = 0;  // they are no layouts yet
  count.add(walk.count);
  return out;
}

SpaceCount Space::walk(const LayoutChoice& prefix, Scenario& scenario, const Visit& visit,
                       const Ends& ends) const {
  const std::size_t start = depth_of(prefix);
  Walk walk{scenario, stated_by(prefix), prefix, start, dimensions_.size(), visit, ends, {}};
  resolve(walk.stated, scenario);
  descend(walk, start);
  return std::move(walk.count);
}

SpaceCount Space::walk_to(std::size_t depth, const LayoutChoice& prefix, Scenario& scenario,
                          const Visit& visit, const Ends& ends) const {
  const std::size_t start = depth_of(prefix);
  const std::size_t stop = std::max(start, depth);
  Walk walk{scenario, stated_by(prefix), prefix, start, stop, visit, ends, {}};
  resolve(walk.stated, scenario);
  descend(walk, start);
  if (stop < dimensions_.size()) walk.count.legal = 0;
  return std::move(walk.count);
}

std::size_t Space::depth_before(int level) const {
  const auto behind = std::ranges::find_if(
      dimensions_, [&](const LayoutDimension* dimension) { return dimension->level >= level; });
  return static_cast<std::size_t>(behind - dimensions_.begin());
}

LaterLevels Space::later_levels(std::size_t depth, std::vector<LaterLevels::Level> levels) const {
  LaterLevels out;
  std::vector<bool> is_open(dimensions_.size(), true);
  std::fill_n(is_open.begin(), depth, false);
  for (const LaterLevels::Level& wanted : levels) {
    const std::size_t at = depth_before(static_cast<int>(wanted.level));
    if (at < depth || at == dimensions_.size()) continue;
    if (dimensions_[at]->level != static_cast<int>(wanted.level)) continue;  // it is stated
    is_open[at] = false;
    out.levels.push_back({at, wanted.most});
  }
  out.open = paths_of(is_open);
  return out;
}

void Space::set_later(const LaterLevels& later, std::size_t index, Walk& walk,
                      std::vector<LayoutChoice>& out) const {
  if (index == later.levels.size()) {
    if (check(walk.scenario, walk.stated, later.open).empty()) out.push_back(walk.choice);
    return;
  }
  const auto [level, most] = later.levels[index];
  const LayoutDimension& dimension = *dimensions_[level];
  for (const std::int64_t value : dimension.distinct(walk.scenario)) {
    const bool is_whole = most == std::numeric_limits<std::int64_t>::max();
    if (value > most || (is_whole && !admits(level, value))) continue;
    set(walk, level, value);
    set_later(later, index + 1, walk, out);
  }
  dimension.set(walk.stated, std::nullopt);
  walk.choice.values[level] = LayoutChoice::kUnset;
  resolve(walk.stated, walk.scenario);
}

std::vector<LayoutChoice> Space::settings_of(const LaterLevels& later, const LayoutChoice& prefix,
                                             Scenario& scenario) const {
  std::vector<LayoutChoice> out;
  const Visit nobody;
  const Ends never;
  Walk walk{scenario, stated_by(prefix), prefix, 0, 0, nobody, never, {}};
  resolve(walk.stated, scenario);
  set_later(later, 0, walk, out);
  return out;
}

void Space::put(const LayoutChoice& choice, Scenario& scenario) const {
  resolve(stated_by(choice), scenario);
}

std::int64_t Space::default_of(std::size_t level, const LayoutChoice& choice,
                               Scenario& scenario) const {
  Stated stated = stated_by(choice);
  dimensions_[level]->set(stated, std::nullopt);
  resolve(stated, scenario);
  return dimensions_[level]->of(scenario.layout);
}

KeySearch::Values Space::values(std::size_t level, const LayoutChoice& choice,
                                Scenario& scenario) const {
  put(choice, scenario);
  KeySearch::Values out = dimensions_[level]->distinct(scenario);
  std::erase_if(out, [&](std::int64_t value) { return !admits(level, value); });
  return out;
}

KeySearch::Values Space::all_values(std::size_t level, const LayoutChoice& choice,
                                    Scenario& scenario) const {
  put(choice, scenario);
  KeySearch::Values out = dimensions_[level]->values(scenario);
  std::erase_if(out, [&](std::int64_t value) { return !admits(level, value); });
  return out;
}

std::optional<LayoutChoice> Space::choice_of(const Layout& layout, Scenario& scenario) const {
  LayoutChoice out;
  for (std::size_t level = 0; level < dimensions_.size(); ++level) {
    const std::int64_t value = dimensions_[level]->of(layout);
    if (!admits(level, value)) return std::nullopt;
    out.values[level] = static_cast<std::int32_t>(value);
  }
  if (!objections(out, scenario).empty()) return std::nullopt;
  const bool is_same = std::ranges::all_of(layout_dimensions(), [&](const LayoutDimension& one) {
    return one.of(scenario.layout) == one.of(layout);
  });
  return is_same ? std::optional(out) : std::nullopt;
}

Errors Space::objections(const LayoutChoice& choice, Scenario& scenario) const {
  const Stated stated = stated_by(choice);
  resolve(stated, scenario);
  return check(scenario, stated, open_behind_[depth_of(choice)]);
}

// Values of a dimension depend on what stands in Prefix and on nothing else
// (layout/key_search.cpp): prefixes that agree in it have as many combinations behind them.
struct Space::Counting {
  using Prefix = std::array<std::int64_t, 10>;
  Scenario scenario;
  Stated stated;
  std::map<std::pair<std::size_t, Prefix>, double> known;  // by level

  // Whether its value stands in a prefix, or decides one that does.
  static bool reads(const LayoutDimension& dimension) {
    static constexpr std::array kRead{"layout.tp",
                                      "layout.pp",
                                      "layout.cp",
                                      "layout.ep",
                                      "layout.etp",
                                      "layout.zero",
                                      "layout.virtual_stages",
                                      "layout.schedule"};
    return std::ranges::find(kRead, std::string_view(dimension.path)) != kRead.end();
  }
  Prefix prefix() const {
    const Layout& l = scenario.layout;
    return {l.tp,
            l.pp,
            l.cp,
            l.dp,
            l.ep,
            l.etp,
            l.zero,
            l.virtual_stages,
            static_cast<std::int64_t>(l.schedule),
            static_cast<std::int64_t>(scenario.training.framework)};
  }
};

double Space::combinations_of_all() const {
  if (!contradictions_.empty()) return 0;
  Counting counting{open_.scenario, open_.stated, {}};
  resolve(counting.stated, counting.scenario);
  return count(counting, 0);
}

double Space::combinations_behind(const std::vector<LayoutChoice>& prefixes) const {
  Counting counting{open_.scenario, open_.stated, {}};
  double sum = 0;
  for (const LayoutChoice& prefix : prefixes) {
    counting.stated = stated_by(prefix);
    resolve(counting.stated, counting.scenario);
    sum += count(counting, depth_of(prefix));
  }
  return sum;
}

double Space::count(Counting& counting, std::size_t level) const {
  if (level == dimensions_.size()) return 1;
  const LayoutDimension& dimension = *dimensions_[level];
  const auto [found, fresh] = counting.known.try_emplace({level, counting.prefix()}, 0);
  if (!fresh) return found->second;
  end_if_stopped();
  KeySearch::Values values = dimension.values(counting.scenario);
  std::erase_if(values, [&](std::int64_t value) { return !admits(level, value); });
  if (!Counting::reads(dimension)) {
    const double behind = values.empty() ? 0 : count(counting, level + 1);
    return found->second = static_cast<double>(values.size()) * behind;
  }
  double sum = 0;
  for (const std::int64_t value : values) {
    dimension.set(counting.stated, value);
    resolve(counting.stated, counting.scenario);
    sum += count(counting, level + 1);
  }
  dimension.set(counting.stated, std::nullopt);
  return found->second = sum;
}

}  // namespace stepcast
