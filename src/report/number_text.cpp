// SPDX-License-Identifier: Apache-2.0
#include "report/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stepcast {
namespace {

std::string grouped(const std::string& digits) {
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// A number that rounds to zero is not negative: "0.0", not "-0.0".
std::string unsigned_zero(std::string number) {
  const bool zero = number.find_first_of("123456789") == std::string::npos;
  if (zero && number.front() == '-') number.erase(0, 1);
  return number;
}

}  // namespace

std::string fixed_text(double value, int decimals) {
  return unsigned_zero(fmt::format("{:.{}f}", value, decimals));
}

std::string number_text(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude >= digits - 1) {
    const double unit = std::pow(10, magnitude - digits + 1);
    const double rounded = std::round(value / unit) * unit;
    return std::abs(value) < 1e4 ? fmt::format("{:.0f}", rounded)
                                 : grouped(fmt::format("{:.0f}", rounded));
  }
  if (magnitude < -5) return fmt::format("{:.{}g}", value, digits);
  return fmt::format("{:.{}f}", value, digits - 1 - magnitude);
}

std::string chance_text(double chance) {
  constexpr double kSurest = 0.99;
  if (chance > kSurest) return "above 99 %";
  return chance < 1 - kSurest ? "below 1 %" : percent_text(chance, 0);
}

std::string count_text(double count) {
  return count < 1000 ? fmt::format("{:.0f}", count) : number_text(count, 3);
}

std::string time_text(Seconds time) {
  const double s = time.value();
  // Times are sums of whole picoseconds; less than ten of them is what rounding leaves.
  if (std::abs(s) < 1e-11) return "0 s";
  if (std::abs(s) < 1e-3) return number_text(s * 1e6, 3) + " us";
  if (std::abs(s) < 1) return number_text(s * 1e3) + " ms";
  return number_text(s) + " s";
}

std::string duration_text(Seconds time) {
  const double s = time.value();
  if (s < 120) return time_text(time);
  if (s < 2 * 3600) return number_text(s / 60, 3) + " min";
  if (s < 2 * 86400) return number_text(s / 3600, 3) + " h";
  return number_text(s / 86400, 3) + " days";
}

std::string dollars_text(double dollars) {
  // Three digits round up to the next unit from here on: $999,600 is a million.
  if (dollars >= 999.5e6) return "$" + number_text(dollars / 1e9, 3) + "B";
  if (dollars >= 999.5e3) return "$" + number_text(dollars / 1e6, 3) + "M";
  if (dollars >= 1 && dollars < 999.5) return fmt::format("${:.2f}", dollars);
  std::string digits = number_text(dollars, 3);
  if (dollars >= 999.5 && dollars < 9995) digits.insert(1, ",");  // as for larger sums
  return "$" + digits;
}

std::string percent_text(double fraction, int decimals) {
  if (!std::isfinite(fraction)) return "-";
  return unsigned_zero(fmt::format("{:.{}f}", fraction * 100, decimals)) + " %";
}

std::string signed_percent_text(double fraction, int decimals) {
  if (!std::isfinite(fraction)) return "-";
  return unsigned_zero(fmt::format("{:+.{}f}", fraction * 100, decimals)) + " %";
}

std::string counted_text(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string gib_text(ByteCount bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / 1073741824.0);
}

std::string rate_text(BytesPerSecond rate) { return number_text(rate.value() / 1e9, 3) + " GB/s"; }

std::string parameters_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  // Three digits round up to the next unit from here on: 999.9 million is 1 billion.
  if (value >= 999.5e9) return number_text(std::max(1.0, value / 1e12), 3) + " T";
  if (value >= 999.5e6) return number_text(std::max(1.0, value / 1e9), 3) + " B";
  return number_text(value / 1e6, 3) + " M";
}

std::string exact_text(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string ranks_text(std::vector<RankId> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    if (!out.empty()) out += ",";
    out += fmt::format("{}", ranks[i].value);
    if (last > i) out += fmt::format("-{}", ranks[last].value);
    i = last + 1;
  }
  return out;
}

std::string bar_text(double start, double length, int width) {
  constexpr double kVisible = 0.0005;  // less reads "0.0 %"
  if (!(length >= kVisible)) return "";
  const auto column = [&](double share) {
    return std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  };
  const int begin = std::min(column(start), width - 1);
  const int end = std::max(column(start + length), begin + 1);
  std::string out(static_cast<std::size_t>(begin), ' ');
  for (int i = begin; i < end; ++i) out += "█";
  return out;
}

std::string range_text(const std::string& low, const std::string& high) {
  return fmt::format("{} to {}", low, high);
}

}  // namespace stepcast
