// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis_numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "report/number_text.h"

namespace stepcast {

std::string signed_time_text(double seconds) {
  if (std::abs(seconds) < 1e-9) return time_text(Seconds(0));
  return (seconds < 0 ? "-" : "") + time_text(Seconds(std::abs(seconds)));
}

std::string message_bytes_text(double bytes) {
  using Unit = std::pair<double, const char*>;
  for (const auto& [size, name] : {Unit{1e9, "GB"}, Unit{1e6, "MB"}, Unit{1e3, "kB"}}) {
    if (bytes >= size) return fmt::format("{} {}", number_text(bytes / size), name);
  }
  return fmt::format("{:.0f} B", bytes);
}

std::string message_rate_text(double bytes_per_s) {
  constexpr double kLeast = 1e6;
  return bytes_per_s >= kLeast ? rate_text(BytesPerSecond(bytes_per_s)) : "-";
}

}  // namespace stepcast
