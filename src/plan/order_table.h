// SPDX-License-Identifier: Apache-2.0
// The bound of a pipeline needs to know this about a schedule's orders (schedule/schedule.h).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layout_code.h"

namespace stepcast {

struct Scenario;

struct StageFacts {
  // Pairs of passes in a row: forward then forward, forward then backward, and so on.
  std::int64_t forward_forward = 0, forward_backward = 0;
  std::int64_t backward_forward = 0, backward_backward = 0;
  std::int32_t first_chunk = 0;  // of the model, of the first forward
  std::int32_t last_chunk = 0;   // of the last backward
  // Moments between a forward and the backward behind it, with most chunks in flight: of all, and
  // of those where the backward is of the model's last chunk. How many micro-batches of each chunk
  // of the stage are held then, in the order of its local chunks, and the chunks of the two passes.
  struct Moment {
    std::vector<std::int64_t> held;
    std::int32_t forward_chunk = 0, backward_chunk = 0;
  };
  std::vector<Moment> moments;
  std::vector<std::int32_t> chunks;  // of the model, by local chunk
};

struct OrderFacts {
  std::vector<std::int64_t> layers;    // by model chunk
  std::vector<std::int32_t> stage_of;  // by model chunk
  std::vector<StageFacts> stages;
};

class OrderTable {
 public:
  const OrderFacts& facts(const LayoutCode& code, const Scenario& scenario);

 private:
  Remembered<OrderFacts> known_;
};

}  // namespace stepcast
