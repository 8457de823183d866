// SPDX-License-Identifier: Apache-2.0
// Holds what a machine reached against thresholds. Whatever was not measured is a violation, too:
// a test that was not run has not been passed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acceptance/thresholds.h"
#include "calibrate/import/imported.h"

namespace stepcast {

struct Judged {
  std::string what;  // "all_gather over dp, 8 ranks, 16 MB"
  std::string unit;  // "s", "tokens/s", "B/s"
  double threshold = 0;
  bool at_most = false;  // the threshold is the most, else the least
  std::optional<double> measured = {};
  bool kept() const {
    return measured && (at_most ? *measured <= threshold : *measured >= threshold);
  }
};

struct Results {
  std::optional<double> step_s;  // of a log
  Imported imported;             // of nccl-tests
};

// The results of a collective count for a size of at most twice, or half, that of the threshold;
// groups that ran at once are printed as one of all ranks.
std::vector<Judged> judge_results(const Thresholds& thresholds, const Results& results);

}  // namespace stepcast
