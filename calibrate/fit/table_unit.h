// SPDX-License-Identifier: Apache-2.0
// A table of kernels states in one of these units what was measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

enum class TableUnit { kFraction, kTflops, kMicroseconds, kMilliseconds, kSeconds };

// Files declare it so: "fraction of dense peak", "TFLOP/s", "us", "ms", "s"; in the enum's order.
const std::vector<std::string>& table_unit_names();
// A column's name says it so: "efficiency", "tflops", "time_us", "time_ms", "time_s".
std::optional<TableUnit> unit_of_column(std::string_view column);

// FLOP/s of a kernel of `flops` FLOPs for which a table states `measured`; fractions are of `peak`.
double flops_per_s(TableUnit unit, double measured, double flops, double peak);

}  // namespace stepcast
