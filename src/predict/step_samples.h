// SPDX-License-Identifier: Apache-2.0
// Steps of a machine that is never twice the same: each pass of each rank takes a time that is
// drawn, and each device has a speed of its own (docs/uneven.md).
#pragma once

#include <cstdint>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "predict/prediction.h"

namespace stepcast {

struct SimulationInput;

// How much longer than their price the runs of one sample take.
struct StepDraws {
  std::vector<std::vector<std::vector<double>>> seconds;  // by step, class, instruction
  double of(std::size_t step, std::int32_t rank_class, std::int32_t instruction) const {
    return seconds[step][static_cast<std::size_t>(rank_class)]
                  [static_cast<std::size_t>(instruction)];
  }
};

// `input`: every rank its own class. Each sample is the last of `steps` replayed steps. The same
// inputs and the same seed give the same samples for any number of threads.
Result<StepSamples> sample_steps(const SimulationInput& input, std::int32_t steps,
                                 const SampleOptions& options);

}  // namespace stepcast
