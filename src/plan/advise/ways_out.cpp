// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/ways_out.h"

#include <algorithm>
#include <cmath>

#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr int kDoublings = 3;

// The least bytes of state per parameter, sharded over all GPUs; no framework needs less
// (docs/memory.md).
double least_state_bytes(TrainingMode mode) {
  switch (mode) {
    case TrainingMode::kPretrain:
      return 16;
    case TrainingMode::kLora:
      return 2;
    case TrainingMode::kQlora:
      return 0.5;
  }
  return 0;
}

// The factor by which the rung misses a demand that more GPUs could meet; 0 when it misses
// something else.
double short_of_speed(const RungResult& result) {
  double most = 0;
  for (const Shortfall& shortfall : result.shortfalls) {
    switch (shortfall.constraint) {
      case Constraint::kThroughput:
        most = std::max(most, shortfall.limit / shortfall.value);
        break;
      case Constraint::kDeadline:
        most = std::max(most, shortfall.value / shortfall.limit);
        break;
      case Constraint::kMemory:
      case Constraint::kBudget:
        return 0;
    }
  }
  return most;
}

// The multiple of the present GPUs to begin with; 0 when no number of GPUs helps.
double least_growth(const AdviceInput& input, const std::vector<RungResult>& rungs) {
  double growth = 0;
  bool fits = false;
  for (const RungResult& result : rungs) {
    fits = fits || result.fits;
    const double miss = short_of_speed(result);
    const bool of_all = result.gpus == input.base.cluster.gpus();
    if (of_all && miss > 0 && std::isfinite(miss))
      growth = growth > 0 ? std::min(growth, miss) : miss;
  }
  if (fits) return growth;
  const Scenario& base = input.base;
  const double parameters = static_cast<double>(count_parameters(base.model).total());
  const double memory = static_cast<double>(base.cluster.spec.accelerator.memory) *
                        (1 - input.demands.memory_margin) *
                        static_cast<double>(base.cluster.gpus());
  return std::max(1.0, parameters * least_state_bytes(base.training.mode) / memory);
}

Result<std::optional<RungResult>> first_that_meets(const AdviceInput& input, std::int64_t gpus,
                                                   TrainingMode mode) {
  for (const Rung& rung : ladder()) {
    if (rung.one_gpu || (rung.of_experts && !input.base.model.moe)) continue;
    if (is_over(input.search)) break;
    auto result = search_rung(input, rung, gpus, mode);
    if (!result) return failure(result.error());
    if (result->meets()) return std::optional(std::move(*result));
  }
  return std::nullopt;
}

// Tries adapters on one GPU, and where that misses a demand, on the first rung of all GPUs that
// meets them.
Result<RungResult> tune(const AdviceInput& input, const Rung& rung) {
  auto alone = search_rung(input, rung, 1);
  const std::int64_t all = input.base.cluster.gpus();
  if (!alone || alone->meets() || all == 1) return alone;
  auto found = first_that_meets(input, all, *rung.mode);
  if (!found) return failure(found.error());
  return *found ? std::move(**found) : std::move(*alone);
}

}  // namespace

Result<std::vector<RungResult>> ways_out(const AdviceInput& input,
                                         const std::vector<RungResult>& rungs) {
  std::vector<RungResult> out;
  const bool fits = std::ranges::any_of(rungs, &RungResult::fits);
  if (!fits && input.base.training.mode == TrainingMode::kPretrain) {
    for (const char* id : {"lora", "qlora"}) {
      auto result = tune(input, rung_named(id));
      if (!result) return failure(result.error());
      if (result->layout) out.push_back(std::move(*result));
    }
  }
  const double growth = least_growth(input, rungs);
  if (!(growth > 0)) return out;
  // Rounded down: GPUs that need no recomputation any more are faster, too.
  const int start = std::max(1, static_cast<int>(std::floor(std::log2(growth))));
  for (int doubling = start; doubling < start + kDoublings; ++doubling) {
    const std::int64_t gpus = input.base.cluster.gpus() << std::min(doubling, 40);
    if (gpus > kMaxGpus) break;
    auto found = first_that_meets(input, gpus, input.base.training.mode);
    if (!found) return failure(found.error());
    if (!*found) continue;
    out.push_back(std::move(**found));
    break;
  }
  return out;
}

}  // namespace stepcast
