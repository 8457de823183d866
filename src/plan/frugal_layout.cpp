// SPDX-License-Identifier: Apache-2.0
#include "plan/frugal_layout.h"

#include <utility>

#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/search.h"
#include "plan/space.h"

namespace stepcast {
namespace {

constexpr std::size_t kFewValues = 4;

}  // namespace

Result<std::optional<LayoutForecast>> most_frugal(const Planner& planner, const LayoutChoice& start,
                                                  const SearchOptions& search) {
  PredictOptions options;
  options.stop = [&] { return is_over(search); };
  auto first = planner.predict(start, options);
  if (!first && first.error().empty()) return std::nullopt;
  if (!first) return failure(first.error());
  LayoutForecast best{start, std::move(*first)};
  const Space& space = planner.space();
  Scenario scratch = space.base();
  for (std::size_t level = 0; level < space.dimensions().size(); ++level) {
    // Values that take the same time may differ in memory.
    const auto values = space.all_values(level, best.choice, scratch);
    if (values.size() > kFewValues) continue;
    for (const std::int64_t value : values) {
      if (is_over(search)) return std::optional(std::move(best));
      LayoutChoice other = best.choice;
      if (other.values[level] == value) continue;
      other.values[level] = static_cast<std::int32_t>(value);
      if (!space.objections(other, scratch).empty()) continue;
      auto prediction = planner.predict(other, options);
      if (!prediction || prediction->peak_device >= best.prediction.peak_device) continue;
      best = {other, std::move(*prediction)};
    }
  }
  return std::optional(std::move(best));
}

}  // namespace stepcast
