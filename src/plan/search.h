// SPDX-License-Identifier: Apache-2.0
// The best layouts of a space, by bounds first and by the engine last
// (docs/design/012-search-of-layouts.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plan/bound.h"
#include "plan/bounded_layout.h"
#include "plan/ranking.h"
#include "plan/space.h"
#include "predict/prediction.h"

namespace stepcast {

struct SearchProgress {
  double elapsed_s = 0;
  std::int64_t bounded = 0;  // layouts, and partial ones
  std::int64_t replayed = 0;
  std::int64_t open = 0;  // bounded, and not yet known to be worse than the last place
  double best_s = 0;      // step time of the best so far; 0: none
  double bound_s = 0;     // no layout that is left is faster; 0: not known yet
  std::optional<LayoutChoice> best = {};
};

// The fraction of the device's memory that stays free unless stated: runs that were forecast above
// 95 % of it are the ones that go out of it.
inline constexpr double kMemoryMargin = 0.05;

struct SearchOptions {
  std::int64_t top = 10;  // places that are to be certain
  bool prove = false;     // until they are; else `replays` are enough
  std::int64_t replays = 256;
  // Unless it proves, the search ends where nothing that is left is faster than its last place by
  // more than this part of it.
  double close_enough = 0;
  double time_limit_s = 0;   // 0: none
  double memory_margin = 0;  // of the device's memory, left free
  double risk = 0.5;         // the quantile of the step time that places are ranked by; 0.5 or more
  int front = 0;             // points of the front of time and memory, at most
  int threads = 1;
  std::function<void(const SearchProgress&)> progress;  // between rounds
  // Asked often; any thread. A search that is to stop before its first replay still makes one
  // round of them, so that it has an answer.
  std::function<bool()> stop;
  // A moment that ends it as the time limit does, also replays that are under way.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Under either, the search first looks for some layout that fits. As long as it has found none,
  // a limit that is shorter is stretched to this.
  double first_answer_s = 0.5;
};

bool stopped(const SearchOptions& options);  // by `stop`
bool is_over(const SearchOptions& options);  // stopped, or behind the deadline

// Makes of the time limit a deadline that all searches with these options share.
void share_time_limit(SearchOptions& options);

// Options of the first of `parts` searches that have the rest of the time between them.
SearchOptions with_share_of_time(const SearchOptions& options, std::size_t parts);

struct FoundLayout {
  LayoutChoice choice;
  double bound_s = 0;
  double ranked_s = 0;  // the quantile of its step time
  Simplicity simplicity = {};
  Prediction prediction;
  bool is_weighed = false;  // its simplicity is known
};

// Neighbours in `found` that a forecast does not tell apart stand in one place.
bool share_place(const Prediction& one, const Prediction& other);

struct SearchResult {
  std::vector<FoundLayout> found;  // replayed and fitting, by place (plan/ranking.h)
  // The front of time and memory, as indices into `found`: each the fastest of those that need a
  // tenth less than the one before.
  std::vector<std::size_t> front;
  // Fastest by bound: what misses the limit by little, and might be faster than the last place.
  std::vector<BoundedLayout> too_large;
  std::optional<BoundedLayout> smallest;  // nothing was found: the layout that needs least
  ByteCount memory_limit = 0;
  SpaceCount space;
  double combinations = 0;
  std::int64_t bounded = 0;   // layouts
  std::int64_t subtrees = 0;  // partial layouts that were bounded, for all behind them
  // Combinations that fell, most of them with the partial layout that they complete: the bound on
  // memory is above the limit, or that on time above the last place.
  double cut_by_memory = 0, cut_by_time = 0;
  double left_open = 0;  // combinations that neither fell nor were replayed; 0 once it is proven
  std::int64_t replayed = 0;
  std::int64_t replayed_too_large = 0;
  // No layout that was neither cut nor replayed is faster. 0 when none is left.
  double bound_s = 0;
  bool proven = false;  // the first `top` places are certain
  bool interrupted = false;
  double elapsed_s = 0;

  // Combinations that no rule was seen to refuse, and that are not equal to others.
  double differing() const {
    return cut_by_memory + cut_by_time + left_open + static_cast<double>(replayed);
  }
  // The rules leave no layout.
  bool is_refused() const { return space.legal == 0 && !interrupted; }
};

// Orders `found` by its values (less is better) as places are, and `front` with it. Gives the
// former index of each.
std::vector<std::size_t> put_in_order(std::span<const double> values, SearchResult& result);

Result<SearchResult> search(const Space& space, const PricingByFramework& pricing,
                            const SearchOptions& options);

}  // namespace stepcast
