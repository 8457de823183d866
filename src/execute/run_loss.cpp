// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "execute/operation_call.h"

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
  const Array targets = call.micro_batch->targets->array();
  const cpu::LogitSlice slice = slice_of_vocabulary(call);
  if (!kernel.backward) {
    const Array statistics = call.write(1);
    call.kernels().cross_entropy(slice, call.write(0), targets, tokens, statistics,
                                 statistics.from(tokens), statistics.from(2 * tokens));
    return;
  }
  const Array largest = call.read(1), sum = largest.from(tokens), target = largest.from(2 * tokens);
  call.kernels().add_loss(largest, sum, target, tokens, &call.totals->loss_sum);
  // The mean over all tokens of the step: ranks and micro-batches add up.
  const double all = static_cast<double>(call.scenario.training.global_batch) *
                     static_cast<double>(call.shape.sequence);
  call.kernels().cross_entropy_backward(slice, call.write(0), targets, tokens, largest, sum,
                                        static_cast<float>(1 / all));
}

}  // namespace stepcast
