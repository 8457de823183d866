// SPDX-License-Identifier: Apache-2.0
#include "report/why_not.h"

#include <fmt/format.h>

#include "layout/scenario.h"
#include "plan/launchable.h"
#include "plan/search.h"
#include "plan/space.h"

namespace stepcast {

Errors slips_of(const std::vector<WhyNotQuestion>& questions, const std::string& flag) {
  Errors errors;
  for (const WhyNotQuestion& question : questions) {
    if (question.planner) continue;
    for (Error error : question.planner.error()) {
      if (error.code == ErrorCode::kIllegal || error.code == ErrorCode::kNotSupported) continue;
      error.path = fmt::format("{} ({})", flag, error.path);
      error.file.clear();
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

WhyNot why_not(const WhyNotQuestion& question, const SearchOptions& options,
               const SearchResult& all) {
  WhyNot out;
  out.asked = question.asked;
  const auto& planner = question.planner;
  if (!planner) {
    out.rules = planner.error();
    for (Error& error : out.rules) error.file.clear();
    return out;
  }
  SearchOptions one = options;
  one.top = 1;
  one.front = 0;
  const auto result = (*planner)->search(one);
  if (!result) {
    out.rules = result.error();
    return out;
  }
  out.proven = result->proven;
  const auto words = [&](const LayoutChoice& choice) { return choice_text(**planner, choice); };
  if (!result->found.empty()) {
    out.best = result->found.front();
    out.layout = words(out.best->choice);
    if (!all.found.empty()) {
      out.reason = reason_against(**planner, *out.best, all.found.front().prediction);
      Scenario asked = (*planner)->space().base();
      (*planner)->space().put(out.best->choice, asked);
      for (const Error& error : not_proposed(asked)) {
        out.reason = fmt::format("proposed only when asked: {} {}; {}", error.path, error.message,
                                 out.reason);
      }
    }
  } else if (!result->proven) {
    out.cut_off = true;
  } else if (result->smallest) {
    out.large = result->smallest;
    out.layout = words(out.large->choice);
  } else {
    out.rules = refusals(result->space);
  }
  return out;
}

}  // namespace stepcast
