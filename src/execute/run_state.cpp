// SPDX-License-Identifier: Apache-2.0
// Work over all gradients or states of a rank. It is no single kernel call: each goes through the
// pieces of the flat state that the rank owns.
#include "execute/operation_call.h"

#include "layout/scenario.h"

namespace stepcast {
namespace {

void run(const OperationCall& call, const ZeroGradients&) { call.state.zero_gradients(); }

void run(const OperationCall& call, const SquaredNorm&) {
  call.state.add_squares(call.counted_elsewhere, &call.totals->local_squared_norm);
}

// The factor is chosen on the host, as frameworks do.
void run(const OperationCall& call, const ClipGradients&) {
  float squared = 0;
  call.memory.device.download(&squared, &call.totals->squared_norm, sizeof(squared));
  call.state.scale_gradients(static_cast<float>(clip_factor(static_cast<double>(squared))));
}

void run(const OperationCall& call, const OptimizerUpdate& update) {
  const float* norm = update.clips ? &call.totals->squared_norm : nullptr;
  call.state.update(AdamW{}, call.step, norm, update.rounds);
}

void run(const OperationCall& call, const BalanceUpdate& update) {
  call.state.balance(update.rounds);
}

// A unit's gradients into the wider type that reduces them.
void widen_gradients(const OperationCall& call) {
  const ElementRange unit = call.wide->unit;
  call.wide->data =
      call.memory.make_uncounted(unit.size(), call.scenario.training.reduce_precision);
  call.kernels().copy(call.state.gradients(unit.begin), call.wide->data->array(), unit.size());
}

template <class Work>
bool run_if(const OperationCall& call) {
  const auto* work = std::get_if<Work>(&call.operation.work);
  if (work != nullptr) run(call, *work);
  return work != nullptr;
}

}  // namespace

bool run_on_state(const OperationCall& call) {
  const auto* cast = std::get_if<Cast>(&call.operation.work);
  if (cast != nullptr && cast->subject == CastSubject::kGradients) {
    widen_gradients(call);
    return true;
  }
  if (cast != nullptr && cast->subject == CastSubject::kParameters) {
    call.state.round_weights();
    return true;
  }
  return run_if<ZeroGradients>(call) || run_if<SquaredNorm>(call) || run_if<ClipGradients>(call) ||
         run_if<OptimizerUpdate>(call) || run_if<BalanceUpdate>(call);
}

}  // namespace stepcast
