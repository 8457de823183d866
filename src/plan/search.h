// SPDX-License-Identifier: Apache-2.0
// The best layouts of a space, by bounds first and by the engine last
// (docs/design/012-search-of-layouts.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "plan/bound.h"
#include "plan/space.h"
#include "predict/prediction.h"

namespace stepcast {

struct SearchProgress {
  double elapsed_s = 0;
  std::int64_t bounded = 0, replayed = 0;
  std::int64_t open = 0;  // bounded, and not yet known to be worse than the last place
  double best_s = 0;      // step time of the best so far; 0: none
  double bound_s = 0;     // no layout that is left is faster; 0: not known yet
};

// Of the device's memory, left free unless stated: runs that were forecast above 95 % of it are the
// ones that go out of it.
inline constexpr double kMemoryMargin = 0.05;

struct SearchOptions {
  std::int64_t top = 10;  // places that are to be certain
  bool prove = false;     // until they are; else `replays` are enough
  std::int64_t replays = 256;
  double time_limit_s = 0;   // 0: none
  double memory_margin = 0;  // of the device's memory, left free
  double risk = 0.5;         // the quantile of the step time that places are ranked by; 0.5 or more
  int front = 0;             // points of the front of time and memory, at most
  int threads = 1;
  std::function<void(const SearchProgress&)> progress;  // between rounds
  std::function<bool()> stop;                           // asked often; any thread
};

struct FoundLayout {
  LayoutChoice choice;
  double bound_s = 0;
  double ranked_s = 0;  // the quantile of its step time
  Prediction prediction;
};

// Neighbours in `found` that a forecast does not tell apart stand in one place.
bool share_place(const Prediction& one, const Prediction& other);

struct RejectedLayout {
  LayoutChoice choice;
  double bound_s = 0;          // of its step time
  ByteCount device_bytes = 0;  // no less than this
};

struct SearchResult {
  std::vector<FoundLayout> found;  // replayed and fitting, by place (plan/ranking.h)
  // The front of time and memory, as indices into `found`: each the fastest of those that need a
  // tenth less than the one before.
  std::vector<std::size_t> front;
  std::vector<RejectedLayout> too_large;   // what misses the limit by little: fastest by bound
  std::optional<RejectedLayout> smallest;  // of all that do not fit, the one that needs least
  ByteCount memory_limit = 0;
  SpaceCount space;
  double combinations = 0;
  std::int64_t bounded = 0;
  std::int64_t cut_by_memory = 0;  // bound on memory above the limit
  std::int64_t cut_by_time = 0;    // bound on time above the last place
  std::int64_t replayed = 0;
  std::int64_t replayed_too_large = 0;
  // The least bound of the layouts that were neither cut nor replayed. 0 when none is left, or when
  // not every layout was bounded.
  double bound_s = 0;
  bool proven = false;  // the first `top` places are certain
  bool interrupted = false;
  double elapsed_s = 0;
};

// `found` in this order of its indices; `front` goes along.
void reorder(const std::vector<std::size_t>& order, SearchResult& result);

Result<SearchResult> search(const Space& space, const PricingByFramework& pricing,
                            const SearchOptions& options);

}  // namespace stepcast
