// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/json.h"

namespace stepcast {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr const char* kFile = "measured_errors.json";
constexpr double kLow = 0.05, kHigh = 0.95;  // so that nine in ten lie between
constexpr double kMostLogError = 10;

// Between the two nearest values. `sorted` is not empty.
double quantile_of(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

MeasuredErrors::MeasuredErrors(std::span<const MeasuredError> errors) {
  runs_ = static_cast<int>(errors.size());
  std::map<std::string, std::vector<double>> by_mechanism;
  for (const MeasuredError& error : errors) {
    for (const std::string& mechanism : error.mechanisms) {
      by_mechanism[mechanism].push_back(error.log_error);
    }
  }
  for (auto& [mechanism, values] : by_mechanism) {
    std::ranges::sort(values);
    double sum = 0;
    for (const double value : values) sum += value;
    bands_[mechanism] = {static_cast<int>(values.size()), rounded(quantile_of(values, kLow)),
                         rounded(quantile_of(values, kHigh)),
                         rounded(sum / static_cast<double>(values.size()))};
  }
  take_means();
}

void MeasuredErrors::take_means() {
  double sum = 0;
  int count = 0;
  for (const auto& [mechanism, band] : bands_) {
    if (band.runs < kEnough) continue;
    sum += band.mean * band.mean;
    ++count;
  }
  of_unknown_ = count > 0 ? std::sqrt(sum / count) : 0;
}

Result<MeasuredErrors> MeasuredErrors::read(const std::string& profiles_folder) {
  MeasuredErrors out;
  const std::string file = profiles_folder + "/" + kFile;
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return out;
  const auto document = JsonDocument::load(file);
  if (!document) return failure(document.error());
  ObjectReader object((*document)->root());
  const auto format = object.required_integer("stepcast_measured_errors", 0);
  if (format != kFormat && object.ok()) {
    object.fail("stepcast_measured_errors", ErrorCode::kBadValue,
                fmt::format("format {} is not known", format), fmt::format("{}", kFormat));
  }
  object.required_text("made_by");
  out.runs_ = static_cast<int>(object.required_integer("runs", 0));
  if (const auto bands = object.value("mechanisms")) {
    for (const JsonValue& item : bands->items()) {
      ObjectReader row(item);
      const auto name = row.text("name");
      ErrorBand band;
      band.runs = static_cast<int>(row.integer("runs", 1, 1 << 20).value_or(0));
      band.low = row.number("low", -kMostLogError, kMostLogError).value_or(0);
      band.high = row.number("high", -kMostLogError, kMostLogError).value_or(0);
      band.mean = row.number("mean", -kMostLogError, kMostLogError).value_or(0);
      row.finish();
      if (name) out.bands_[*name] = band;
    }
  }
  object.finish();
  if (!(*document)->errors().empty()) return failure((*document)->errors());
  out.take_means();
  return out;
}

std::string MeasuredErrors::text() const {
  nlohmann::ordered_json out;
  out["stepcast_measured_errors"] = kFormat;
  out["made_by"] = "stepcast check all --errors FILE: of ln(measured / predicted)";
  out["runs"] = runs_;
  out["mechanisms"] = nlohmann::ordered_json::array();
  for (const auto& [mechanism, band] : bands_) {
    out["mechanisms"].push_back({{"name", mechanism},
                                 {"runs", band.runs},
                                 {"low", band.low},
                                 {"high", band.high},
                                 {"mean", band.mean}});
  }
  return out.dump(1) + "\n";
}

const ErrorBand* MeasuredErrors::find(const std::string& mechanism) const {
  const auto found = bands_.find(mechanism);
  return found != bands_.end() && found->second.runs >= kEnough ? &found->second : nullptr;
}

}  // namespace stepcast
