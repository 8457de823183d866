// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "core/assert.h"
#include "execute/operation_call.h"

namespace stepcast {

void run_embedding(const OperationCall& call) {
  const Shape& shape = call.shape;
  const std::string_view name = call.operation.name;
  const cpu::TableSlice slice{call.tp_rank * shape.vocab, shape.vocab, shape.hidden};
  const std::int64_t first_row = shape.sequence_parallel ? call.tp_rank * shape.rows : 0;
  if (name == "embedding") {
    call.kernels().embed_tokens(slice, call.micro_batch->tokens->array(), shape.tokens,
                                call.weight(0), call.write(0));
  } else if (name == "positions") {
    const Array table = call.weight(0).from(call.scenario.model.position_offset * shape.hidden);
    call.kernels().add_positions(call.write(0), table, shape.rows, first_row, shape.sequence,
                                 shape.hidden);
  } else if (name == "position_gradient") {
    const GradientPlace place = call.gradient(0);
    if (place.fresh) {
      call.kernels().fill(place.data, 0, call.parameter(0).elements());
    }
    const Array table = place.data.from(call.scenario.model.position_offset * shape.hidden);
    call.kernels().add_positions_backward(call.read(0), table, shape.rows, first_row,
                                          shape.sequence, shape.hidden);
  } else if (name == "table_gradient") {
    const Array table = call.operation.writes.empty() ? call.gradient(0).data : call.write(0);
    call.kernels().embed_tokens_backward(slice, call.micro_batch->tokens->array(), shape.tokens,
                                         call.read(1), table);
  } else {
    STEPCAST_ASSERT(false, "every operation on tables is run");
  }
}

}  // namespace stepcast
