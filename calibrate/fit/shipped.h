// SPDX-License-Identifier: Apache-2.0
// Turns published tables into the profiles that ship: one curve per table, one profile per device.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/published.h"
#include "core/result.h"
#include "cost/collective_curve.h"
#include "cost/profile.h"

namespace stepcast {

// Notes about a curve beside its values.
struct CurveNote {
  std::string operation;  // "gemm bf16", "attention fa2", ...
  FitError form, held_out;
  FitError cells;  // of held-out cells among the sizes that were fitted
  Provenance provenance = Provenance::kDataSheet;
  std::vector<std::string> fitted_on;
};

// A size curve of collectives among GPUs, as it was measured.
struct CollectiveTable {
  MeasuredGroup group;
  std::vector<CollectiveSample> samples;
  FitError held_out;  // of each size between others, from the others
};

struct ShippedProfile {
  Profile profile;
  std::vector<CollectiveTable> collectives;  // of this profile alone
  std::string title;
  std::map<std::string, std::string> machine;  // further facts, by key
  std::vector<CurveNote> notes;
  std::string remark;
};

// `accelerators` by name, of topologies/accelerators.
Result<std::vector<ShippedProfile>> ship_profiles(
    const Published& published, const std::map<std::string, Accelerator>& accelerators);

}  // namespace stepcast
