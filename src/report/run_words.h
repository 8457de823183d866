// SPDX-License-Identifier: Apache-2.0
// The verdicts on recorded runs in words.
#pragma once

#include <string>
#include <vector>

#include "core/json_tree.h"
#include "validate/run_verdicts.h"

namespace stepcast {

Json run_object(const RunVerdict& run);
std::string run_words(const RunVerdict& run);  // "7.58 s, was 6.91 s: 9.7 % slower"

// Findings that fail a gate: out of memory, slower, of other work, with more memory, and then
// parted from their forecast.
std::vector<Finding> broken_runs(const std::vector<RunVerdict>& runs);
// A run that is faster is said, and no failure.
std::vector<Finding> faster_runs(const std::vector<RunVerdict>& runs);

// "1 of 3 runs is slower", of the gate's first and third question; empty without runs before.
std::string runs_line(const std::vector<RunVerdict>& runs);
std::string forecasts_line(const std::vector<RunVerdict>& runs);

}  // namespace stepcast
