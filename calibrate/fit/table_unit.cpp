// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/table_unit.h"

#include <algorithm>

namespace stepcast {

const std::vector<std::string>& table_unit_names() {
  static const std::vector<std::string> names = {"fraction of dense peak", "TFLOP/s", "us", "ms",
                                                 "s"};
  return names;
}

std::optional<TableUnit> unit_of_column(std::string_view column) {
  static const std::vector<std::string> names = {"efficiency", "tflops", "time_us", "time_ms",
                                                 "time_s"};
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) return std::nullopt;
  return static_cast<TableUnit>(found - names.begin());
}

double flops_per_s(TableUnit unit, double measured, double flops, double peak) {
  switch (unit) {
    case TableUnit::kFraction:
      return measured * peak;
    case TableUnit::kTflops:
      return measured * 1e12;
    case TableUnit::kMicroseconds:
      return flops / (measured * 1e-6);
    case TableUnit::kMilliseconds:
      return flops / (measured * 1e-3);
    case TableUnit::kSeconds:
      break;
  }
  return flops / measured;
}

}  // namespace stepcast
