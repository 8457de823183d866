// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cluster/data_folder.h"
#include "core/remembered_files.h"
#include "core/statistics.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

constexpr const char* kName = "measured_errors";
constexpr double kLow = 0.05, kHigh = 0.95;  // so that nine in ten lie between
constexpr double kMostLogError = 10;

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
  for (const auto& [mechanism, values] : by_mechanism) {
    bands_[mechanism] = {static_cast<int>(values.size()), rounded(quantile(values, kLow)),
                         rounded(quantile(values, kHigh)), rounded(mean(values))};
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
  static RememberedFiles<MeasuredErrors> remembered;
  const DataFolder folder(profiles_folder, kName);
  if (!folder.has(kName)) return MeasuredErrors();
  return remembered.get({profiles_folder + "/" + kName + ".json"},
                        [&] { return read_from(folder); });
}

Result<MeasuredErrors> MeasuredErrors::read_from(const DataFolder& folder) {
  MeasuredErrors out;
  const auto document = folder.open(kName);
  if (!document) return failure(document.error());
  ObjectReader object((*document)->root());
  object.ignore("stepcast_measured_errors");  // checked when it was opened
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
  out["stepcast_measured_errors"] = 1;
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
  return json_text(out, 1) + "\n";
}

const ErrorBand* MeasuredErrors::find(const std::string& mechanism) const {
  const auto found = bands_.find(mechanism);
  return found != bands_.end() && found->second.runs >= kEnough ? &found->second : nullptr;
}

}  // namespace stepcast
