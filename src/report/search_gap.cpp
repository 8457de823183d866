// SPDX-License-Identifier: Apache-2.0
#include "report/search_gap.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/search_result.h"
#include "predict/prediction.h"
#include "report/number_text.h"

namespace stepcast {

std::optional<double> gap_of(const SearchResult& result, const Prediction& best) {
  if (result.proven) return 0;
  if (result.bound_s <= 0) return std::nullopt;
  return std::max(0.0, best.step_time.value() / result.bound_s - 1);
}

std::string gap_text(double gap) {
  return fmt::format("at most {} from the best", percent_text(gap, 0));
}

std::string gap_text(const SearchResult& result, const Prediction& best) {
  const std::optional<double> gap = gap_of(result, best);
  if (!gap || result.proven) return "";
  if (*gap == 0) return "no layout of it is faster by more than a near tie";
  return gap_text(*gap);
}

}  // namespace stepcast
