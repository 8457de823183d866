// SPDX-License-Identifier: Apache-2.0
// DualPipeV: the model goes down the stages and comes back up.
#include "schedule/dual_pipe_order.h"

#include "schedule/schedule.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

StageOrder order(const Pipeline& pipeline, std::int64_t stage) {
  return dual_pipe_order({.ahead = stage,
                          .behind = pipeline.stages - stage - 1,
                          .micro_batches = pipeline.micro_batches});
}

}  // namespace

extern const Schedule kDualPipeV = {.name = "dualpipev",
                                    .order = order,
                                    .placement = Placement::kFolded,
                                    .chunks = 2,
                                    .pairs = Pairs::kForwardBackward,
                                    .least_rounds = 2,
                                    .splits_backward = true,
                                    .bubble = "(p-1)(f&b + b+w - 3w), in times of a chunk",
                                    .in_flight = "p + 1/2",
                                    .source = "deepseek-ai/DualPipe, dualpipev.py"};

}  // namespace stepcast
