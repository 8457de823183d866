// SPDX-License-Identifier: Apache-2.0
#include "validate/recorded_run.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/row_types.h"
#include "layout/scenario.h"
#include "model/model.h"

namespace stepcast {
namespace {

struct WorkKey {
  const char* key;
  std::int64_t RunWork::*value;
};
constexpr std::array kWorkKeys = {
    WorkKey{"parameters", &RunWork::parameters}, WorkKey{"global_batch", &RunWork::global_batch},
    WorkKey{"sequence_length", &RunWork::sequence_length}, WorkKey{"gpus", &RunWork::gpus}};

}  // namespace

RunWork work_of(const Scenario& scenario) {
  return {count_parameters(scenario.model).total(), scenario.training.global_batch,
          scenario.training.sequence_length, std::int64_t{scenario.cluster.gpus()}};
}

std::string other_work(const RunWork& was, const RunWork& is) {
  std::string out;
  for (const auto& [key, value] : kWorkKeys) {
    if (was.*value == is.*value) continue;
    out += fmt::format("{}{} is {}, was {}", out.empty() ? "" : ", ", key, is.*value, was.*value);
  }
  return out;
}

// Half the distance of the quartiles of a normal distribution is 0.6745 of its deviation, and its
// median scatters by sqrt(pi / 2) of the deviation over the root of the count.
double error_of_median(const CaseFigures& measured) {
  if (!measured.step_time_spread || !measured.steps) return 0;
  constexpr double kDeviations = 0.6745, kOfMedian = 1.2533;
  return kOfMedian * *measured.step_time_spread / kDeviations / std::sqrt(*measured.steps);
}

Rows RunWork::fields() {
  using F = RunWork;
  constexpr auto count = [](Row one) { return one.required().within(1, 1e18); };
  static constexpr Row all[] = {
      count(row<&F::parameters>("parameters")).says("of the model"),
      count(row<&F::global_batch>("global_batch")).says("sequences of a step"),
      count(row<&F::sequence_length>("sequence_length")).says("tokens of a sequence"),
      count(row<&F::gpus>("gpus")).says("of the run")};
  return rows_of<F>(all);
}

Rows EarlierRun::fields() {
  using F = EarlierRun;
  static constexpr Row all[] = {
      row<&F::source>("source").required().says("where that run was reported"),
      row<&F::measured>("measured").required().says("its figures, as those of the case"),
      row<&F::work>("work").says(
          "what it trained; the step times of two runs are compared where this is the same")};
  return rows_of<F>(all);
}

}  // namespace stepcast
