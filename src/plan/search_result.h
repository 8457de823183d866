// SPDX-License-Identifier: Apache-2.0
// The outcome of a search of layouts: what it has found, and what it has left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/quantity.h"
#include "plan/bounded_layout.h"
#include "plan/layout_choice.h"
#include "plan/ranking.h"
#include "plan/space_count.h"
#include "predict/prediction.h"

namespace stepcast {

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
  // Nothing was found: the layout that needs least, of those that were looked at. With a forecast
  // its memory is the forecast's, else a bound.
  std::optional<BoundedLayout> smallest;
  std::optional<Prediction> smallest_forecast;
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
  bool is_refused() const { return space.legal == 0 && found.empty() && !interrupted; }
};

// Orders `found` by its values (less is better) as places are, and `front` with it. Gives the
// former index of each.
std::vector<std::size_t> put_in_order(std::span<const double> values, SearchResult& result);

}  // namespace stepcast
