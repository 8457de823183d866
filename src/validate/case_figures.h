// SPDX-License-Identifier: Apache-2.0
// The figures of a recorded run, declared once: what its source states, what a forecast says in the
// same terms, and which of them are judged (docs/formats/suite.md).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/json_fwd.h"
#include "core/quantity.h"

namespace stepcast {

class JsonValue;
struct Rows;  // core/rows.h

// A collective of so many bytes, as nccl-tests counts them, took so long: [bytes, microseconds].
struct CollectiveTime {
  static constexpr const char* kAccepts = "[bytes, microseconds]";
  ByteCount bytes = 0;
  double time_us = 0;
  bool operator==(const CollectiveTime&) const = default;
};
bool read_json(const JsonValue& value, CollectiveTime& out);
Json written_json(const CollectiveTime& value);

struct CaseFigures {
  std::optional<double> step_time_s = {};
  std::optional<double> step_time_low_s = {}, step_time_high_s = {};  // of forecasts
  // A run has these: half the distance of the quartiles of its step time, relative to it, and of
  // how many steps.
  std::optional<double> step_time_spread = {}, steps = {};
  std::optional<double> tokens_per_s_per_gpu = {};
  std::optional<double> model_tflops_per_gpu = {};
  std::optional<double> mfu = {};
  std::optional<double> peak_memory_bytes = {};
  std::optional<double> bubble_fraction = {};
  bool out_of_memory = false;                 // it ran out of memory, and nothing else was measured
  std::vector<CollectiveTime> times_us = {};  // of a collective, by size
  std::optional<double> collective_time_s = {};  // of a case that has become one for each size

  bool tells_time() const {
    return step_time_s || tokens_per_s_per_gpu || model_tflops_per_gpu || mfu;
  }
  // That a source states one or more, or that the run had no memory for them.
  void check(const JsonValue& value) const;

  static Rows fields();
};

// How far a forecast is from what was measured, relative to that, and of a bubble the difference;
// or how far it may be.
struct CaseErrors {
  std::optional<double> step_time = {};
  std::optional<double> peak_memory = {};
  std::optional<double> bubble_fraction = {};
  std::optional<double> collective_time = {};

  bool any() const { return step_time || peak_memory || bubble_fraction || collective_time; }
  void check(const JsonValue& value) const;  // that limits limit something

  static Rows fields();
};

// A figure in which a forecast is judged.
struct JudgedFigure {
  const char* name;  // of its error and of the limit on it
  std::optional<double> CaseErrors::*error;
  std::optional<double> CaseFigures::*value;
  bool as_difference = false;  // a bubble may be zero

  // Nothing where one of the two does not tell.
  std::optional<double> error_of(const CaseFigures& predicted, const CaseFigures& measured) const;
  // Whether a run of which this was stated can be judged in it.
  bool is_told_by(const CaseFigures& stated) const;
};
std::span<const JudgedFigure> judged_figures();

}  // namespace stepcast
