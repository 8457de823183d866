// SPDX-License-Identifier: Apache-2.0
// Limits on the figures of a summary: what makes `check` a gate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "validate/summary.h"

namespace stepcast {

// "step_time.mean_abs_error=0.10", or for one suite or tag "ROW:metric=limit".
struct Tolerance {
  std::string row = "all";
  std::string metric;
  double limit = 0;  // an upper bound; a lower one where larger is better; on |bias|
};

struct Finding {
  std::string title;    // "megatron-a100: step_time.mean_abs_error"
  std::string message;  // a sentence with both figures
};

// The figure is one of `figures`; `example` stands in the error of a text without a limit, `flag`
// in every error.
Result<Tolerance> parse_limit(std::string_view text, const std::vector<std::string>& figures,
                              std::string_view example, const std::string& flag = "--tolerance");
Result<Tolerance> parse_tolerance(std::string_view text);  // of metric_names()
// All of them, or everything that is wrong with some.
Result<std::vector<Tolerance>> parse_tolerances(const std::vector<std::string>& texts);

// One finding per limit that is not kept. Naming a row that the summary lacks is an input error.
Result<std::vector<Finding>> apply_tolerances(const Summary& summary,
                                              const std::vector<Tolerance>& tolerances);

}  // namespace stepcast
