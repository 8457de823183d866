// SPDX-License-Identifier: Apache-2.0
#include "validate/case_figures.h"

#include <array>

#include "core/error.h"
#include "core/json.h"
#include "core/json_tree.h"

namespace stepcast {

void CaseFigures::check(const JsonValue& value) const {
  if (value.is_object() && value.raw().empty()) {
    value.fail(ErrorCode::kMissingKey, "a case needs one measured figure or more");
  }
}

void CaseErrors::check(const JsonValue& value) const {
  if (value.is_object() && value.raw().empty()) {
    value.fail(ErrorCode::kMissingKey, "limits nothing", "\"step_time\": 0.05");
  }
}

std::optional<double> JudgedFigure::error_of(const CaseFigures& predicted,
                                             const CaseFigures& measured) const {
  const auto forecast = predicted.*value, run = measured.*value;
  if (!forecast || !run) return std::nullopt;
  return as_difference ? *forecast - *run : (*forecast - *run) / *run;
}

bool JudgedFigure::is_told_by(const CaseFigures& stated) const {
  return value == &CaseFigures::step_time_s ? stated.tells_time() : (stated.*value).has_value();
}

std::span<const JudgedFigure> judged_figures() {
  static constexpr std::array kAll{
      JudgedFigure{"step_time", &CaseErrors::step_time, &CaseFigures::step_time_s},
      JudgedFigure{"peak_memory", &CaseErrors::peak_memory, &CaseFigures::peak_memory_bytes},
      JudgedFigure{"bubble_fraction", &CaseErrors::bubble_fraction, &CaseFigures::bubble_fraction,
                   true}};
  return kAll;
}

}  // namespace stepcast
