// SPDX-License-Identifier: Apache-2.0
#include "execute/live_arrays.h"

#include "layout/scenario.h"

namespace stepcast {

RankPart LiveArrays::part() const {
  const Shape& shape = call_.shape;
  RankPart out;
  out.first_token_row = call_.tp_rank * shape.vocab;
  out.vocab = call_.scenario.model.vocab - out.first_token_row;
  if (shape.sequence_parallel) out.first_position = call_.tp_rank * shape.rows;
  out.tensor_place = call_.tp_rank;
  out.head_shares = shape.cp_exchange;
  out.head_place = call_.groups.coordinate(Axis::kCp) % out.head_shares;
  out.places = places_in_sequence(shape, call_.groups.coordinate(Axis::kCp));
  // The mean over all tokens of the step: ranks and micro-batches add up.
  const double all = static_cast<double>(call_.scenario.training.global_batch) *
                     static_cast<double>(call_.scenario.training.sequence_length);
  out.loss_scale = static_cast<float>(1 / all);
  out.prediction_scale = static_cast<float>(prediction_weight(call_.scenario.model));
  return out;
}

}  // namespace stepcast
