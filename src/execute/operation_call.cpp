// SPDX-License-Identifier: Apache-2.0
#include "execute/operation_call.h"

#include "core/assert.h"
#include "program/flat_stretches.h"

namespace stepcast {

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

Array OperationCall::weight(std::size_t i) const {
  return has_parameter(i) ? state.parameters(range(i).begin) : Array{};
}

GradientPlace OperationCall::gradient(std::size_t i) const { return state.gradient(range(i)); }

void run_operation(const OperationCall& call) {
  const auto& work = call.operation.work;
  if (const auto* gemm = std::get_if<Gemm>(&work)) {
    run_gemm(call, *gemm);
  } else if (const auto* attention = std::get_if<Attention>(&work)) {
    run_attention(call, *attention);
  } else if (const auto* collective = std::get_if<Collective>(&work)) {
    run_collective(call, *collective);
  } else {
    run_elementwise(call, std::get<Elementwise>(work));
  }
}

}  // namespace stepcast
