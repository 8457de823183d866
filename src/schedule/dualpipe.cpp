// SPDX-License-Identifier: Apache-2.0
// DualPipe: two copies of the model go through the stages, one down and one up, each with half the
// micro-batches, and meet in the middle. Stages that mirror each other run the same passes.
#include <algorithm>

#include "schedule/schedule.h"

#include "schedule/dual_pipe_order.h"
#include "schedule/schedule_kind.h"

namespace stepcast {
namespace {

StageOrder order(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t ahead = std::min(stage, pipeline.stages - 1 - stage);
  return dual_pipe_order({.ahead = ahead,
                          .behind = pipeline.stages / 2 - ahead - 1,
                          .micro_batches = pipeline.micro_batches / 2,
                          .first = {micro_batches_of(pipeline, stage, 0).begin,
                                    micro_batches_of(pipeline, stage, 1).begin}});
}

}  // namespace

extern const Schedule kDualPipe = {.name = "dualpipe",
                                   .order = order,
                                   .placement = Placement::kMirrored,
                                   .chunks = 2,
                                   .pairs = Pairs::kForwardBackward,
                                   .least_rounds = 2,
                                   .splits_backward = true,
                                   .bubble = "(p/2-1)(f&b + b+w - 3w)",
                                   .in_flight = "p + 1",
                                   .source = "deepseek-ai/DualPipe, dualpipe.py"};

}  // namespace stepcast
