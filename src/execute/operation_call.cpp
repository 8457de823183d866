// SPDX-License-Identifier: Apache-2.0
#include "execute/operation_call.h"

#include "core/assert.h"

namespace stepcast {

Array OperationCall::data(BufferId id) const {
  const Tensor& held = instance.buffers[id.index()];
  STEPCAST_ASSERT(held != nullptr, "a buffer is alive while an operation uses it");
  return held->array();
}

ElementRange OperationCall::range(std::size_t i) const {
  const auto index = operation.parameters[i].index();
  if (block.weights[index].borrowed) {
    return {place.table_offset, place.table_offset + block.weights[index].elements()};
  }
  std::int64_t begin = place.offset;
  for (std::size_t w = 0; w < index; ++w) {
    if (!block.weights[w].borrowed) begin += block.weights[w].elements();
  }
  return {begin, begin + block.weights[index].elements()};
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
