// SPDX-License-Identifier: Apache-2.0
// Turns what was measured on a processor into its profile (docs/formats/profile.md, format 1): what
// was measured as it stands, forms fitted to it for other shapes, size curves of collectives, and
// the error of each. Equal measurements give equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/cpu_measurements.h"
#include "calibrate/fit/fit_error.h"
#include "core/result.h"

namespace stepcast {

// Notes about a curve beside its values.
struct CpuCurve {
  std::string name;  // of "log_error"
  std::int64_t samples = 0;
  FitError form, held_out;  // zeros where nothing could be held out
  double log_error = 0;     // the data sheet's where nothing tells
};

struct CpuProfile {
  std::string name;
  std::string text;
  std::vector<CpuCurve> curves;
  // Signatures of operations whose mean did not repeat within the run. They get their median times
  // what the rest of the machine cost the others.
  std::vector<std::string> unrepeated;
};

// Errors: those of check(), and nothing measured at all.
Result<CpuProfile> make_cpu_profile(const CpuMeasurements& measurements, const std::string& name);

}  // namespace stepcast
