// SPDX-License-Identifier: Apache-2.0
#include "validate/case_figures.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/row_types.h"

namespace stepcast {
namespace {

// No key but those that say how something was measured, and not what.
bool says_how_alone(const SortedJson& measured) {
  return std::ranges::all_of(measured.items(), [](const auto& item) {
    return item.first == "steps" || item.first == "step_time_spread" ||
           item.first == "out_of_memory";
  });
}

}  // namespace

bool read_json(const JsonValue& value, CollectiveTime& out) {
  const std::vector<JsonValue> pair = value.items();
  const auto bytes = pair.size() == 2 ? pair[0].number() : std::nullopt;
  const auto time = pair.size() == 2 ? pair[1].number() : std::nullopt;
  constexpr double kMost = 1e15;
  if (!bytes || !time || !(*bytes >= 1 && *bytes <= kMost && *time > 0 && *time <= kMost)) {
    value.fail(ErrorCode::kBadValue, "a time of a collective is [bytes, microseconds]",
               "[1048576, 45.2]");
    return false;
  }
  out = {static_cast<ByteCount>(*bytes), *time};
  return true;
}

Json written_json(const CollectiveTime& value) { return {value.bytes, value.time_us}; }

void CaseFigures::check(const JsonValue& value) const {
  const bool measured = tells_time() || peak_memory_bytes || bubble_fraction || !times_us.empty() ||
                        collective_time_s;
  if (value.is_object() && !measured && !out_of_memory && says_how_alone(value.raw())) {
    value.fail(ErrorCode::kMissingKey, "a case needs one measured figure or more",
               "a time, a throughput, memory or a bubble");
  }
  if (out_of_memory && measured) {
    value.fail(ErrorCode::kIllegal, "a run that ran out of memory measured nothing",
               "leave out_of_memory out, or the other figures");
  }
}

void CaseErrors::check(const JsonValue& value) const {
  if (value.is_object() && value.raw().empty()) {
    value.fail(ErrorCode::kMissingKey, "limits nothing", "\"step_time\": 0.05");
  }
}

std::optional<double> JudgedFigure::error_of(const CaseFigures& predicted,
                                             const CaseFigures& measured) const {
  const auto forecast = predicted.*value, run = measured.*value;
  if (!forecast || !run) return std::nullopt;
  return as_difference ? *forecast - *run : (*forecast - *run) / *run;
}

bool JudgedFigure::is_told_by(const CaseFigures& stated) const {
  if (value == &CaseFigures::step_time_s) return stated.tells_time();
  if (value == &CaseFigures::collective_time_s && !stated.times_us.empty()) return true;
  return (stated.*value).has_value();
}

std::span<const JudgedFigure> judged_figures() {
  static constexpr std::array kAll{
      JudgedFigure{"step_time", &CaseErrors::step_time, &CaseFigures::step_time_s},
      JudgedFigure{"peak_memory", &CaseErrors::peak_memory, &CaseFigures::peak_memory_bytes},
      JudgedFigure{"bubble_fraction", &CaseErrors::bubble_fraction, &CaseFigures::bubble_fraction,
                   true},
      JudgedFigure{"collective_time", &CaseErrors::collective_time,
                   &CaseFigures::collective_time_s}};
  return kAll;
}

Rows CaseFigures::fields() {
  using F = CaseFigures;
  constexpr double kSmallest = 1e-12;  // measured figures are positive
  constexpr double kLargest = 1e18;
  constexpr auto positive = [](Row one) { return one.within(kSmallest, kLargest); };
  constexpr auto forecast = [](const F& figures) { return figures.step_time_low_s.has_value(); };
  static constexpr Row all[] = {
      positive(row<&F::step_time_s>("step_time_s")).says("seconds of a step"),
      positive(row<&F::step_time_low_s>("step_time_low_s")).where<F>(forecast),
      positive(row<&F::step_time_high_s>("step_time_high_s")).where<F>(forecast),
      row<&F::step_time_spread>("step_time_spread")
          .within(0, kLargest)
          .says("half the distance of the quartiles of the steps, relative to their median"),
      row<&F::steps>("steps").within(1, kLargest).says("how many the figures are of"),
      positive(row<&F::tokens_per_s_per_gpu>("tokens_per_s_per_gpu"))
          .says("tokens a second and GPU"),
      positive(row<&F::model_tflops_per_gpu>("model_tflops_per_gpu"))
          .says("TFLOP/s of a GPU, as the convention counts"),
      row<&F::mfu>("mfu").within(kSmallest, 1).says("share of the convention's peak"),
      row<&F::peak_memory_bytes>("peak_memory_bytes")
          .within(1, kLargest)
          .says("of the fullest GPU"),
      row<&F::bubble_fraction>("bubble_fraction")
          .within(0, 1)
          .says("share of the time that the pipeline idles"),
      row<&F::out_of_memory>("out_of_memory")
          .unless_usual()
          .says("it ran out of memory, and nothing was measured"),
      row<&F::times_us>("times_us")
          .unless_usual()
          .says("of a collective by size, rising: bytes as nccl-tests counts them, microseconds"),
      positive(row<&F::collective_time_s>("collective_time_s"))
          .says("of one size, in a baseline; a suite lists `times_us`")};
  return rows_of<F>(all);
}

Rows CaseErrors::fields() {
  using F = CaseErrors;
  static constexpr Row all[] = {
      row<&F::step_time>("step_time").within(0, 1e18).says("relative to the measured time"),
      row<&F::peak_memory>("peak_memory").within(0, 1e18).says("relative to the measured peak"),
      row<&F::bubble_fraction>("bubble_fraction").within(0, 1).says("as a difference"),
      row<&F::collective_time>("collective_time")
          .within(0, 1e18)
          .says("relative to the measured time")};
  return rows_of<F>(all);
}

}  // namespace stepcast
