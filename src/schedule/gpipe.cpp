// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al. 2019, arXiv 1811.06965): all forward passes, then all backward passes. The
// bubble is (p-1)/(m+p-1); every micro-batch's activations are held at once. Backward goes in the
// order of the forward passes, as PyTorch's ScheduleGPipe and Megatron run it.
#include "schedule/schedule.h"

namespace stepcast {
namespace {

StageOrder order(const Pipeline& pipeline, std::int64_t) {
  StageOrder out;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (std::int64_t i = 0; i < pipeline.micro_batches; ++i) {
      out.push_back({pass, static_cast<std::int32_t>(i), 0});
    }
  }
  return out;
}

}  // namespace

extern const Schedule kGpipe = {.name = "gpipe",
                                .order = order,
                                .search_place = 2,
                                .bubble = "(p-1)/(m+p-1)",
                                .in_flight = "m",
                                .source = "Huang et al. 2019"};

}  // namespace stepcast
