// SPDX-License-Identifier: Apache-2.0
#include "execute/operation_call.h"

#include "core/assert.h"
#include "execute/call_kernel.h"
#include "program/flat_stretches.h"

namespace stepcast {

double prediction_weight(const Model& model) {
  constexpr double kOfAllModules = 0.1;
  return model.mtp_layers > 0 ? kOfAllModules / static_cast<double>(model.mtp_layers) : 0;
}

Array OperationCall::data(BufferId id) const {
  const Tensor& held = instance.buffers[id.index()];
  STEPCAST_ASSERT(held != nullptr, "a buffer is alive while an operation uses it");
  return held->array();
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

// The arrays of a running program.
class LiveArrays final : public KernelArrays {
 public:
  explicit LiveArrays(const OperationCall& call) : call_(call) {}

  Array read(std::size_t i, const ArraySpec&) override { return call_.read(i); }
  Array write(std::size_t i, const ArraySpec&) override { return call_.write(i); }
  bool has_write(std::size_t i) const override { return i < call_.operation.writes.size(); }
  HeadArray read_heads(std::size_t i, HeadSide side, const HeadSpec& spec) override {
    const bool packed =
        call_.buffer(call_.operation.reads[i]).elements == spec.tokens * spec.packed();
    if (packed) return {call_.read(i).from(spec.begin(side)), spec.packed()};
    return {call_.read(i), spec.width(side)};
  }
  HeadArray write_heads(HeadSide side, const HeadSpec& spec) override {
    const bool packed =
        call_.buffer(call_.operation.writes[0]).elements == spec.tokens * spec.packed();
    if (packed) return {call_.write(0).from(spec.begin(side)), spec.packed()};
    return {call_.write(static_cast<std::size_t>(side)), spec.width(side)};
  }
  RowArray read_rows(std::size_t i, const RowSpec& spec) override {
    return {call_.read(i), call_.buffer(call_.operation.reads[i]).elements / spec.rows};
  }
  RowArray write_rows(std::size_t i, const RowSpec& spec) override {
    return {call_.write(i), call_.buffer(call_.operation.writes[i]).elements / spec.rows};
  }
  Array weight(std::size_t i, const ArraySpec&) override { return call_.weight(i); }
  GradientPlace gradient(std::size_t i, const ArraySpec&) override { return call_.gradient(i); }
  Array tokens(std::int64_t, std::int64_t, std::int64_t ahead) override { return text(ahead); }
  Array targets(std::int64_t, std::int64_t, std::int64_t ahead) override { return text(ahead + 1); }

  RankPart part() const override {
    const Shape& shape = call_.shape;
    RankPart out;
    out.first_token_row = call_.tp_rank * shape.vocab;
    out.vocab = call_.scenario.model.vocab - out.first_token_row;
    if (shape.sequence_parallel) out.first_position = call_.tp_rank * shape.rows;
    // The mean over all tokens of the step: ranks and micro-batches add up.
    const double all = static_cast<double>(call_.scenario.training.global_batch) *
                       static_cast<double>(shape.sequence);
    out.loss_scale = static_cast<float>(1 / all);
    out.prediction_scale = static_cast<float>(prediction_weight(call_.scenario.model));
    return out;
  }

 private:
  Array text(std::int64_t later) const {
    return call_.micro_batch->text[static_cast<std::size_t>(later)]->array();
  }

  const OperationCall& call_;
};

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

}  // namespace

void run_operation(const OperationCall& call) {
  const Operation::Work& work = call.operation.work;
  if (std::holds_alternative<Alias>(work)) return run_alias(call);
  if (std::holds_alternative<UnitCopy>(work)) return;  // units are gathered and reduced in place
  if (const auto* collective = std::get_if<Collective>(&work)) {
    if (!run_on_experts(call, *collective)) run_collective(call, *collective);
    return;
  }
  if (run_on_state(call) || run_on_experts(call)) return;
  const auto* loss = std::get_if<CrossEntropy>(&work);
  if (loss != nullptr && loss->backward) add_loss(call, *loss);
  LiveArrays arrays(call);
  const bool is_run = call_kernel(work, arrays, call.kernels());
  STEPCAST_ASSERT(is_run, "every operation of an executable program has a kernel");
}

}  // namespace stepcast
