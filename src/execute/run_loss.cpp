// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "execute/operation_call.h"
#include "kernels/cpu/cross_entropy.h"

namespace stepcast {
namespace {

cpu::LogitSlice slice_of_vocabulary(const OperationCall& call) {
  const std::int64_t columns = call.shape.vocab, first = call.tp_rank * columns;
  const std::int64_t valid =
      std::clamp<std::int64_t>(call.scenario.model.vocab - first, 0, columns);
  return {first, columns, valid};
}

}  // namespace

void run_loss(const OperationCall& call, const Elementwise& kernel) {
  const std::int64_t tokens = call.shape.tokens;
  const std::int64_t* targets = call.micro_batch->targets.data();
  const cpu::LogitSlice slice = slice_of_vocabulary(call);
  if (!kernel.backward) {
    float* statistics = call.write(1);
    cpu::cross_entropy<float>(slice, call.write(0), targets, tokens, statistics,
                              statistics + tokens, statistics + 2 * tokens);
    return;
  }
  const float* largest = call.read(1);
  const float *sum = largest + tokens, *target = largest + 2 * tokens;
  for (std::int64_t t = 0; t < tokens; ++t) {
    call.totals.loss_sum += std::log(static_cast<double>(sum[t])) + largest[t] - target[t];
  }
  // The mean over all tokens of the step: ranks and micro-batches add up.
  const double all = static_cast<double>(call.scenario.training.global_batch) *
                     static_cast<double>(call.shape.sequence);
  cpu::cross_entropy_backward<float>(slice, call.write(0), targets, tokens, largest, sum,
                                     static_cast<float>(1 / all));
}

}  // namespace stepcast
