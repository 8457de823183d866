// SPDX-License-Identifier: Apache-2.0
// Sets a forecast beside a measurement, in the terms in which the measurement was stated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "predict/measured_errors.h"
#include "validate/suite.h"

namespace stepcast {

struct Prediction;
struct Scenario;

// A case contradicts itself when it ran but its scenario says that it could not, or when it ran out
// of memory and the forecast is sure that it fits.
enum class Contradiction { kIllegal, kDoesNotFit, kFits };
const char* name_of(Contradiction contradiction);  // "does not fit"

// A collective that was measured by itself, beside what is forecast of it.
struct ComparedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int64_t ranks = 0;
  ByteCount bytes = 0;
  std::string fabric;
  std::string named_algorithm;             // by the source; empty: it names none
  std::string algorithm, protocol, curve;  // of the forecast; empty: there is none

  static Rows fields();
};

struct CaseResult {
  std::string suite;
  std::string id;
  std::vector<std::string> tags;
  std::string group;
  bool nothing_assumed = true;
  bool fitted = false;           // the profile that priced it was fitted on it
  std::string source;            // the repository or paper that reports it (publisher_of)
  std::string publisher;         // who ran it: as its suite says, else its source
  bool shares_a_source = false;  // the profile was fitted on what the same source measured

  std::string failed;          // why it could not be predicted; empty when it was
  bool not_supported = false;  // ... because it is not modelled yet
  std::optional<Contradiction> contradiction;

  std::vector<std::string> mechanisms;  // what the forecast relied on (predict/mechanisms.h)
  // The source states these. A case that was predicted has a step time where its throughput tells
  // one.
  CaseFigures measured;
  CaseErrors limits;
  std::optional<double> most_step_time_s;  // as it was accepted
  std::optional<RunWork> work;             // nothing where the scenario cannot be read
  std::vector<EarlierRun> earlier;
  std::string fingerprint;                       // of the scenario as its suite states it
  std::optional<CaseFigures> predicted;          // in the case's convention
  std::optional<ComparedCollective> collective;  // nothing where a step was measured
  CaseErrors errors;
  std::optional<bool> covered;  // the measured step time lies in the interval

  // Fills in `errors` and `covered` from the two.
  void compare();

  // The forecast is held against this; nothing where there is none.
  std::optional<double> compared_step_time_s() const {
    return predicted ? measured.step_time_s : std::nullopt;
  }
};

// Who published what a source describes: the repository that it names first (one of all rounds of
// MLPerf), or else the number of the paper; "" where it names none. Suites and profiles have such
// texts.
std::string publisher_of(const std::string& source);

// The errors of the cases that no profile was fitted on, for intervals of other forecasts.
MeasuredErrors errors_by_mechanism(const std::vector<CaseResult>& cases);

// Fills in what is known of a case before it is predicted.
CaseResult describe(const Suite& suite, const SuiteCase& test_case);

// FLOPs of one step over all GPUs as the source counts them.
Flops convention_flops(const Scenario& scenario, const Convention& convention);

// Step time that the measurement states: step_time_s, else tokens/s/GPU, TFLOP/s/GPU or MFU turned
// into it, in this order. Nothing when none is given; an error when the peak is not known.
Result<std::optional<double>> measured_step_time(const CaseFigures& measured,
                                                 const Scenario& scenario,
                                                 const Convention& convention);

// Fills in the forecast and the errors.
void align(CaseResult& result, const Scenario& scenario, const Prediction& prediction,
           const Convention& convention);

}  // namespace stepcast
