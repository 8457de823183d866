// SPDX-License-Identifier: Apache-2.0
#include "core/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace stepcast {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kByteUnits[] = {
    {"B", 1},     {"kB", 1e3},   {"KB", 1e3},       {"MB", 1e6},          {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {"TiB", 1099511627776.}};
constexpr Unit kRateUnits[] = {
    {"B/s", 1},        {"kB/s", 1e3},     {"MB/s", 1e6},       {"GB/s", 1e9},
    {"TB/s", 1e12},    {"KiB/s", 1024},   {"MiB/s", 1048576.}, {"GiB/s", 1073741824.},
    {"kb/s", 1e3 / 8}, {"Mb/s", 1e6 / 8}, {"Gb/s", 1e9 / 8},   {"Tb/s", 1e12 / 8},
};
constexpr Unit kTimeUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                               {"min", 60},  {"h", 3600},  {"d", 86400}};
constexpr Unit kCountUnits[] = {{"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
// Units as people also write them. Messages name the others.
constexpr Unit kOtherRateUnits[] = {{"kbps", 1e3 / 8},   {"Mbps", 1e6 / 8},    {"Gbps", 1e9 / 8},
                                    {"Tbps", 1e12 / 8},  {"kbit/s", 1e3 / 8},  {"Mbit/s", 1e6 / 8},
                                    {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}, {"MBps", 1e6},
                                    {"GBps", 1e9},       {"TBps", 1e12}};
constexpr Unit kOtherTimeUnits[] = {{"hour", 3600},  {"hours", 3600},  {"day", 86400},
                                    {"days", 86400}, {"week", 604800}, {"weeks", 604800},
                                    {"minute", 60},  {"minutes", 60},  {"seconds", 1}};
constexpr Unit kOtherCountUnits[] = {{"K", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}};
constexpr Unit kFlopsUnits[] = {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};

// `bare` is the unit of a number that states none; when it is absent, such a number is an error.
// `others` are units that no message names.
Result<double> parse(std::string_view text, std::span<const Unit> units, const char* example,
                     std::optional<double> bare = std::nullopt, std::span<const Unit> others = {}) {
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto bad = [&](std::string message) {
    std::vector<std::string> names;
    for (const Unit& unit : units) names.emplace_back(unit.name);
    return failure({ErrorCode::kBadUnit, std::move(message), "", "",
                    fmt::format("write it like \"{}\"; units: {}", example, one_of(names))});
  };
  if (status != std::errc() || !std::isfinite(value)) {
    return bad(fmt::format("'{}' is not a quantity", text));
  }
  std::string_view unit_name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit_name.empty() && unit_name.front() == ' ') unit_name.remove_prefix(1);
  const auto finite = [&](double quantity) -> Result<double> {
    if (std::isfinite(quantity)) return quantity;
    return bad(fmt::format("'{}' is larger than a number can be", text));
  };
  if (unit_name.empty() && bare) return finite(value * *bare);
  if (unit_name.empty()) return bad(fmt::format("'{}' has no unit", text));
  for (const auto& known : {units, others}) {
    for (const Unit& unit : known) {
      if (unit.name == unit_name) return finite(value * unit.factor);
    }
  }
  return bad(fmt::format("'{}' has the unknown unit '{}'", text, unit_name));
}

// Takes the commas out of "16,400.5k", where they group digits by threes; any other text stays as
// it is.
std::string without_grouping(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789,"), text.size());
  const std::string_view whole = text.substr(0, end);
  std::string digits(whole.substr(0, whole.find(',')));
  if (digits.empty() || digits.size() > 3) return std::string(text);
  for (std::size_t at = digits.size(); at < whole.size(); at += 4) {
    const std::string_view group = whole.substr(at + 1, 3);
    if (whole[at] != ',' || group.size() < 3 || group.find(',') != group.npos) {
      return std::string(text);
    }
    digits += group;
  }
  return digits + std::string(text.substr(end));
}

Result<double> parse_amount(std::string_view text, const char* example) {
  return parse(without_grouping(text), kCountUnits, example, 1, kOtherCountUnits);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  return parse(text, kByteUnits, "80 GiB").map([](double v) { return Bytes(v); });
}
Result<BytesPerSecond> parse_rate(std::string_view text) {
  return parse(text, kRateUnits, "450 GB/s", std::nullopt, kOtherRateUnits).map([](double v) {
    return BytesPerSecond(v);
  });
}
Result<Seconds> parse_seconds(std::string_view text) {
  return parse(text, kTimeUnits, "12 us\" or \"30d", std::nullopt, kOtherTimeUnits)
      .map([](double v) { return Seconds(v); });
}
Result<double> parse_count(std::string_view text) { return parse_amount(text, "2T"); }
Result<double> parse_dollars(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  return parse_amount(text, "500k");
}
Result<double> parse_fraction(std::string_view text) {
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  double value = 0;
  const auto [rest, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || rest != digits.data() + digits.size() || !std::isfinite(value)) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is no fraction", text), "", "",
                    "write it like 0.4 or 40%"});
  }
  return percent ? value / 100 : value;
}
Result<FlopsPerSecond> parse_flops_rate(std::string_view text) {
  return parse(text, kFlopsUnits, "312 TFLOP/s").map([](double v) { return FlopsPerSecond(v); });
}

}  // namespace stepcast
