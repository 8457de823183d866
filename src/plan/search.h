// SPDX-License-Identifier: Apache-2.0
// The best layouts of a space, by bounds first and by the engine last
// (docs/design/012-search-of-layouts.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/result.h"
#include "plan/layout_choice.h"
#include "plan/pricing_by_framework.h"
#include "plan/search_result.h"

namespace stepcast {

class Space;
struct Layout;

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
  // A layout that the space may have: it is replayed first, so that no answer is slower. null:
  // none.
  const Layout* start = nullptr;
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

Result<SearchResult> search(const Space& space, const PricingByFramework& pricing,
                            const SearchOptions& options);

}  // namespace stepcast
