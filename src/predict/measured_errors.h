// SPDX-License-Identifier: Apache-2.0
// How far forecasts were from recorded runs, mechanism by mechanism (predict/mechanisms.h): the
// file measured_errors.json beside the profiles, which `stepcast check all --errors FILE` writes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

class DataFolder;

// The errors ln(measured / predicted) of the runs that exercised a mechanism.
struct ErrorBand {
  int runs = 0;
  double low = 0, high = 0;  // quantiles 0.05 and 0.95
  double mean = 0;
};

// One run: what it exercised, and its ln(measured / predicted).
struct MeasuredError {
  std::vector<std::string> mechanisms;
  double log_error = 0;
  std::string run = {};  // "suite/id"
};

// A recorded run that resembles a scenario.
struct NearRun {
  const MeasuredError* run;
  double likeness = 0;  // 1: it exercised the same mechanisms
};

class MeasuredErrors {
 public:
  static constexpr int kEnough = 5;  // runs, before a band says something

  MeasuredErrors() = default;
  explicit MeasuredErrors(std::span<const MeasuredError> errors);

  // The file in this folder. Without one no mechanism was ever exercised.
  static Result<MeasuredErrors> read(const std::string& profiles_folder);
  std::string text() const;

  int runs() const { return runs_; }  // all together
  // Null: too few runs exercised it.
  const ErrorBand* find(const std::string& mechanism) const;
  // How far the mean error of a mechanism typically is from zero: what to expect of one that no run
  // exercised. The root of the mean square over the bands; 0 without any.
  double of_unknown() const { return of_unknown_; }
  // Those that have most in common with these mechanisms, at most `most`: shared mechanisms over
  // all of both (Jaccard), a mechanism that few runs exercised weighing more.
  std::vector<NearRun> nearest(const std::vector<std::string>& mechanisms, std::size_t most) const;

 private:
  static Result<MeasuredErrors> read_from(const DataFolder& folder);
  void take_means();
  double weight_of(const std::string& mechanism) const;

  int runs_ = 0;
  std::map<std::string, ErrorBand> bands_;
  std::vector<MeasuredError> cases_;
  double of_unknown_ = 0;
};

}  // namespace stepcast
