// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.2): each stage owns v
// chunks of the model and takes micro-batches in groups of g = p, chunk by chunk. The bubble
// shrinks to (p-1)/(vm+p-1). Warm-up as in Megatron-LM's schedules.py: 2(p-stage-1) + (v-1)g
// passes, so that the first stage holds 2(p-1) + (v-1)g + 1 chunks. Larger groups
// (get_schedule_table) give messages more time and hold more; the last group has what is left.
#include <algorithm>

#include "core/assert.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// The k-th pass of a stage: groups of micro-batches visit its chunks in turn, backward in the
// opposite order of chunks.
Slot slot_of(const Pipeline& pipeline, Pass pass, std::int64_t k) {
  const std::int64_t chunks = pipeline.chunks;
  const std::int64_t first = k / (pipeline.group_size() * chunks) * pipeline.group_size();
  const std::int64_t group = std::min(pipeline.group_size(), pipeline.micro_batches - first);
  const std::int64_t in_group = k - first * chunks;
  const std::int64_t turn = in_group / group;
  const std::int64_t chunk = pass == Pass::kForward ? turn : chunks - 1 - turn;
  return {pass, static_cast<std::int32_t>(first + in_group % group),
          static_cast<std::int32_t>(chunk)};
}

StageOrder order(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t rest = pipeline.micro_batches % pipeline.group_size();
  STEPCAST_ASSERT(rest == 0 || rest >= pipeline.stages,
                  "the last group has a micro-batch for each stage");
  const std::int64_t total = pipeline.micro_batches * pipeline.chunks;
  const std::int64_t ahead =
      2 * (pipeline.stages - stage - 1) + (pipeline.chunks - 1) * pipeline.group_size();
  const std::int64_t warm_up = std::min(ahead, total);
  StageOrder out;
  for (std::int64_t k = 0; k < warm_up; ++k) out.push_back(slot_of(pipeline, Pass::kForward, k));
  for (std::int64_t k = 0; k + warm_up < total; ++k) {
    out.push_back(slot_of(pipeline, Pass::kForward, k + warm_up));
    out.push_back(slot_of(pipeline, Pass::kBackward, k));
  }
  for (std::int64_t k = total - warm_up; k < total; ++k) {
    out.push_back(slot_of(pipeline, Pass::kBackward, k));
  }
  return out;
}

}  // namespace

extern const Schedule kInterleaved = {.name = "interleaved",
                                      .order = order,
                                      .chunks = Schedule::kSeveral,
                                      .whole_groups = true,
                                      .pairs = Pairs::kBackwardForward,
                                      .search_place = 1,
                                      .bubble = "(p-1)/(v*m+p-1)",
                                      .in_flight = "p + (p-1)/v",
                                      .source = "Narayanan et al. 2021, section 2.2.2"};

}  // namespace stepcast
