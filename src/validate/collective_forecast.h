// SPDX-License-Identifier: Apache-2.0
// Forecasts a collective that was measured by itself (docs/formats/suite.md, "Collectives").
#pragma once

#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "cost/collective_curve.h"
#include "validate/collective_case.h"

namespace stepcast {

class JsonDocument;
struct Cluster;
struct DataFolders;

// The cluster of a case, with the software that its scenario states.
Result<Cluster> read_collective_scenario(JsonDocument& document, const DataFolders& folders);

// The measured curves without those of these names, and of `table` without its sample at `size`:
// a time that is forecast by itself proves nothing. An error where there is none to leave out.
Result<std::vector<CollectiveCurve>> curves_without(const std::vector<CollectiveCurve>& curves,
                                            const std::string& table, ByteCount size,
                                            const std::vector<std::string>& left_out);

struct CollectiveForecast {
  Seconds time;
  std::string algorithm;  // "nvls-tree"
  std::string protocol;
  std::string curve;  // behind the price; empty: none
};
Result<CollectiveForecast> forecast_collective(const CollectiveCase& one, const Cluster& cluster,
                                               std::vector<CollectiveCurve> curves);

}  // namespace stepcast
