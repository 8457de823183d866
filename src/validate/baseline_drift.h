// SPDX-License-Identifier: Apache-2.0
// How far a run and its forecast are from those that a baseline recorded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/tolerance.h"

namespace stepcast {

// `kInconclusive`: a time beyond its limit, of a machine that others kept busy.
enum class DriftState { kKept, kBetter, kBroken, kInconclusive };

// A figure of the forecast or of the run, then and now. A limit applies to |now - recorded| /
// recorded, and for fractions to the difference.
struct DriftRow {
  bool predicted = false;  // else measured
  std::string key;         // of the prediction file: "step_time_s"
  std::string words;       // "step time"
  double recorded = 0;
  double now = 0;
  double change = 0;
  std::optional<double> limit;  // none: a part of the time, which only explains
  DriftState state = DriftState::kKept;
};

struct BaselineDrift {
  std::string file;
  std::string skipped;         // why nothing was compared; empty: it was
  std::vector<DriftRow> rows;  // forecast first
  std::vector<Finding> broken;
  std::vector<Finding> inconclusive;  // measured anew on a quiet machine, they may be kept
  bool updated = false;               // the file is written anew
};

}  // namespace stepcast
