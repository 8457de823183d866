// SPDX-License-Identifier: Apache-2.0
// Traces that are not of the run that the scenario describes: of another model, of another device,
// of forward passes alone. Their diagnosis would name gaps that nobody has.
#pragma once

#include <vector>

#include "core/error.h"
#include "diagnose/forecast_names.h"

namespace stepcast {

struct Accelerator;

// Traces of forecasts are of any device, and have all their passes.
Errors foreign_traces(const std::vector<Trace>& traces, const ForecastNames& names,
                      const Accelerator& device);

}  // namespace stepcast
