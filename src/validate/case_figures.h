// SPDX-License-Identifier: Apache-2.0
// The figures of a recorded run, declared once: what its source states, what a forecast says in the
// same terms, and which of them are judged (docs/formats/suite.md).
#pragma once

#include <optional>
#include <span>

#include "core/json_field.h"

namespace stepcast {

class JsonValue;

struct CaseFigures {
  std::optional<double> step_time_s = {};
  std::optional<double> step_time_low_s = {}, step_time_high_s = {};  // of forecasts
  std::optional<double> tokens_per_s_per_gpu = {};
  std::optional<double> model_tflops_per_gpu = {};
  std::optional<double> mfu = {};
  std::optional<double> peak_memory_bytes = {};
  std::optional<double> bubble_fraction = {};

  bool tells_time() const {
    return step_time_s || tokens_per_s_per_gpu || model_tflops_per_gpu || mfu;
  }
  void check(const JsonValue& value) const;  // that a source states one or more

  static auto fields() {
    using F = CaseFigures;
    constexpr double kSmallest = 1e-12;  // measured figures are positive
    constexpr double kLargest = 1e18;
    const auto positive = [](const char* key, std::optional<double> F::*member) {
      return json_field(key, member).within(kSmallest, kLargest);
    };
    const auto forecast = [](const F& figures) { return figures.step_time_low_s.has_value(); };
    return std::tuple{
        positive("step_time_s", &F::step_time_s).says("seconds of a step"),
        positive("step_time_low_s", &F::step_time_low_s).where(forecast),
        positive("step_time_high_s", &F::step_time_high_s).where(forecast),
        positive("tokens_per_s_per_gpu", &F::tokens_per_s_per_gpu).says("tokens a second and GPU"),
        positive("model_tflops_per_gpu", &F::model_tflops_per_gpu)
            .says("TFLOP/s of a GPU, as the convention counts"),
        json_field("mfu", &F::mfu).within(kSmallest, 1).says("share of the convention's peak"),
        json_field("peak_memory_bytes", &F::peak_memory_bytes)
            .within(1, kLargest)
            .says("of the fullest GPU"),
        json_field("bubble_fraction", &F::bubble_fraction)
            .within(0, 1)
            .says("share of the time that the pipeline idles")};
  }
};

// How far a forecast is from what was measured, relative to that, and of a bubble the difference;
// or how far it may be.
struct CaseErrors {
  std::optional<double> step_time = {};
  std::optional<double> peak_memory = {};
  std::optional<double> bubble_fraction = {};

  bool any() const { return step_time || peak_memory || bubble_fraction; }
  void check(const JsonValue& value) const;  // that limits limit something

  static auto fields() {
    using F = CaseErrors;
    return std::tuple{
        json_field("step_time", &F::step_time)
            .within(0, 1e18)
            .says("relative to the measured time"),
        json_field("peak_memory", &F::peak_memory)
            .within(0, 1e18)
            .says("relative to the measured peak"),
        json_field("bubble_fraction", &F::bubble_fraction).within(0, 1).says("as a difference")};
  }
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
