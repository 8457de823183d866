// SPDX-License-Identifier: Apache-2.0
// Looped breadth-first (Lamy-Poirier 2023, arXiv 2211.05953), PyTorch's ScheduleLoopedBFS: each
// stage owns v chunks of the model and takes all micro-batches through one of them before the next.
// Its bubble is that of interleaved 1F1B for any number of micro-batches from p on; it holds all of
// them, and parameters that are sharded are gathered once for each chunk.
#include "schedule/schedule.h"

namespace stepcast {
namespace {

StageOrder order(const Pipeline& pipeline, std::int64_t) {
  StageOrder out;
  const auto add = [&](Pass pass, std::int64_t chunk) {
    for (std::int64_t i = 0; i < pipeline.micro_batches; ++i) {
      out.push_back({pass, static_cast<std::int32_t>(i), static_cast<std::int32_t>(chunk)});
    }
  };
  for (std::int64_t chunk = 0; chunk < pipeline.chunks; ++chunk) add(Pass::kForward, chunk);
  for (std::int64_t chunk = pipeline.chunks; chunk-- > 0;) add(Pass::kBackward, chunk);
  return out;
}

}  // namespace

extern const Schedule kLoopedBfs = {.name = "looped-bfs",
                                    .order = order,
                                    .chunks = Schedule::kSeveral,
                                    .bubble = "(p-1)/(v*m+p-1)",
                                    .in_flight = "m",
                                    .source = "Lamy-Poirier 2023, arXiv 2211.05953"};

}  // namespace stepcast
