// SPDX-License-Identifier: Apache-2.0
#include "predict/measured_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
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

MeasuredErrors::MeasuredErrors(std::span<const MeasuredError> errors)
    : cases_(errors.begin(), errors.end()) {
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
  std::vector<std::string> names;  // by which the cases say their mechanisms
  for (const auto& [name, band] : out.bands_) names.push_back(name);
  if (const auto cases = object.value("cases")) {
    for (const JsonValue& item : cases->items()) {
      ObjectReader row(item);
      MeasuredError one{{},
                        row.number("error", -kMostLogError, kMostLogError).value_or(0),
                        row.required_text("run")};
      if (const auto of = row.required("of")) {
        for (const JsonValue& index : of->items()) {
          const auto at = index.integer();
          if (!at) continue;
          if (*at >= 0 && *at < static_cast<std::int64_t>(names.size())) {
            one.mechanisms.push_back(names[static_cast<std::size_t>(*at)]);
          } else {
            index.fail(ErrorCode::kBadValue, "is no place among the mechanisms");
          }
        }
      }
      row.finish();
      out.cases_.push_back(std::move(one));
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
  std::string text = json_text(out, 1);
  text.resize(text.size() - 2);  // the end of the object
  // A run is a line, and its mechanisms are places among those above.
  const auto place = [&](const std::string& mechanism) {
    return std::distance(bands_.begin(), bands_.find(mechanism));
  };
  text += ",\n \"cases\": [";
  const char* before = "\n";
  for (const MeasuredError& one : cases_) {
    nlohmann::ordered_json row{{"run", one.run}, {"error", rounded(one.log_error)}};
    row["of"] = nlohmann::ordered_json::array();
    for (const std::string& mechanism : one.mechanisms) row["of"].push_back(place(mechanism));
    text += before + std::string("  ") + json_text(row);
    before = ",\n";
  }
  return text + "\n ]\n}\n";
}

double MeasuredErrors::weight_of(const std::string& mechanism) const {
  const auto band = bands_.find(mechanism);
  const double of = band == bands_.end() ? 1 : std::max(1, band->second.runs);
  return std::log1p(static_cast<double>(runs_) / of);
}

std::vector<NearRun> MeasuredErrors::nearest(const std::vector<std::string>& mechanisms,
                                             std::size_t most) const {
  std::vector<NearRun> out;
  for (const MeasuredError& one : cases_) {
    double shared = 0, all = 0;
    const auto has = [](const std::vector<std::string>& list, const std::string& name) {
      return std::ranges::find(list, name) != list.end();
    };
    for (const std::string& name : mechanisms) {
      const double weight = weight_of(name);
      all += weight;
      if (has(one.mechanisms, name)) shared += weight;
    }
    for (const std::string& name : one.mechanisms) {
      if (!has(mechanisms, name)) all += weight_of(name);
    }
    out.push_back({&one, all > 0 ? shared / all : 0});
  }
  std::ranges::stable_sort(out, std::greater(), &NearRun::likeness);
  if (out.size() > most) out.resize(most);
  return out;
}

const ErrorBand* MeasuredErrors::find(const std::string& mechanism) const {
  const auto found = bands_.find(mechanism);
  return found != bands_.end() && found->second.runs >= kEnough ? &found->second : nullptr;
}

}  // namespace stepcast
