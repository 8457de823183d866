// SPDX-License-Identifier: Apache-2.0
#include "execute/operation_call.h"

#include "core/assert.h"
#include "execute/call_kernel.h"
#include "execute/fp8_matrices.h"
#include "execute/live_arrays.h"
#include "program/flat_stretches.h"
#include "program/program.h"

namespace stepcast {

double prediction_weight(const Model& model) {
  constexpr double kOfAllModules = 0.1;
  return model.mtp_layers > 0 ? kOfAllModules / static_cast<double>(model.mtp_layers) : 0;
}

OperationCall OperationCall::with(const Operation& other) const {
  return {scenario, shape,  block,  other,      place,       instance,
          state,    memory, groups, tp_rank,    micro_batch, counted_elsewhere,
          totals,   wide,   step,   fp8_history};
}

ProductOperand OperationCall::operand(std::size_t i) const {
  return tensor(operation.reads[i]).operand();
}

ProductOperand OperationCall::fp8_matrix(bool backward) const {
  const Fp8Matrices* const matrices = state.fp8_matrices();
  STEPCAST_ASSERT(matrices != nullptr, "a step begins with casts of its matrices");
  return matrices->of(range(0), backward);
}

Storage& OperationCall::tensor(BufferId id) const {
  const Tensor& held = instance.buffers[id.index()];
  STEPCAST_ASSERT(held != nullptr, "a buffer is alive while an operation uses it");
  return *held;
}

ElementRange BlockPlace::range(ParameterId weight) const {
  const BlockId id = role->chunks[chunk].blocks[block];
  const bool borrowed = program->block(id).weights[weight.index()].borrowed;
  return borrowed ? weight_range(*program, *role, 0, 0, 0)
                  : weight_range(*program, *role, chunk, block, weight.index());
}

ElementRange OperationCall::range(std::size_t i) const {
  return place.range(operation.parameters[i]);
}

namespace {

// An alias moves nothing: its output is the tensor that it reads.
void run_alias(const OperationCall& call) {
  if (call.operation.writes.empty()) return;
  call.instance.buffers[call.operation.writes[0].index()] =
      call.instance.buffers[call.operation.reads[0].index()];
}

// The loss is complete once all slices of the vocabulary have met, which backward begins behind.
void add_loss(const OperationCall& call, const CrossEntropy& loss) {
  const std::int64_t tokens = loss.size.rows();
  const Array largest = call.read(1);
  double* total = loss.ahead ? &call.totals->predicted_loss_sum : &call.totals->loss_sum;
  call.kernels().add_loss({.largest = largest,
                           .sum = largest.from(tokens),
                           .target = largest.from(2 * tokens),
                           .rows = tokens,
                           .total = total});
}

// Chains that are not compiled keep what a norm reads for its backward, wide and narrow. Our
// kernels read the latter.
void keep_input(const OperationCall& call, const Normalization& norm) {
  constexpr std::size_t kNarrow = 2;
  if (norm.backward || call.operation.writes.size() <= kNarrow) return;
  const std::int64_t rows = norm.size.rows(), width = norm.size.width;
  const std::int64_t stride = call.buffer(call.operation.reads[0]).elements / rows;
  call.kernels().variants().copy_columns({.from = {call.read(0), stride},
                                          .to = {call.write(kNarrow), width},
                                          .rows = rows,
                                          .columns = width});
}

// Queries that stay as they are for another turn are turned in a copy.
void copy_queries(const OperationCall& call, const LatentRotary& rotary) {
  const BufferId from = call.operation.reads[0], to = call.operation.writes[0];
  if (rotary.backward || from == to) return;
  call.kernels().copy(call.data(from), call.data(to), call.buffer(to).elements);
}

}  // namespace

void run_operation(const OperationCall& call) {
  const Operation::Work& work = call.operation.work;
  if (std::holds_alternative<Alias>(work)) return run_alias(call);
  if (std::holds_alternative<UnitCopy>(work)) return;  // units are gathered and reduced in place
  if (const auto* collective = std::get_if<Collective>(&work)) {
    if (!run_on_experts(call, *collective)) run_collective(call, *collective);
    return;
  }
  if (run_on_state(call) || run_on_fp8(call) || run_on_experts(call) || run_on_context(call))
    return;
  const auto* loss = std::get_if<CrossEntropy>(&work);
  if (loss != nullptr && loss->backward) add_loss(call, *loss);
  if (const auto* rotary = std::get_if<LatentRotary>(&work)) copy_queries(call, *rotary);
  LiveArrays arrays(call);
  const bool is_run = call_kernel(work, arrays, call.kernels());
  STEPCAST_ASSERT(is_run, "every operation of an executable program has a kernel");
  if (const auto* norm = std::get_if<Normalization>(&work)) keep_input(call, *norm);
}

}  // namespace stepcast
