// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2.2): each stage owns v
// chunks of the model and takes micro-batches in groups of p, chunk by chunk. The bubble shrinks to
// (p-1)/(vm+p-1). Warm-up as in Megatron-LM's schedules.py: 2(p-stage-1) + (v-1)p passes, so that
// the first stage holds 2(p-1) + (v-1)p + 1 chunks.
#include <algorithm>

#include "core/assert.h"
#include "schedule/generators.h"

namespace stepcast {
namespace {

// The k-th pass of a stage: groups of p micro-batches visit its chunks in turn, backward in the
// opposite order of chunks.
Slot slot_of(const Layout& layout, Pass pass, std::int64_t k) {
  const std::int64_t pp = layout.pp;
  const std::int64_t chunks = layout.virtual_stages;
  const std::int64_t group = k / (pp * chunks);
  const std::int64_t in_group = k % (pp * chunks);
  const std::int64_t turn = in_group / pp;
  const std::int64_t chunk = pass == Pass::kForward ? turn : chunks - 1 - turn;
  return {pass, static_cast<std::int32_t>(group * pp + in_group % pp),
          static_cast<std::int32_t>(chunk)};
}

}  // namespace

StageOrder interleaved_order(const Layout& layout, std::int64_t stage, std::int64_t micro_batches) {
  STEPCAST_ASSERT(micro_batches % layout.pp == 0, "interleaved takes whole groups of pp");
  const std::int64_t total = micro_batches * layout.virtual_stages;
  const std::int64_t ahead = 2 * (layout.pp - stage - 1) + (layout.virtual_stages - 1) * layout.pp;
  const std::int64_t warm_up = std::min(ahead, total);
  StageOrder order;
  for (std::int64_t k = 0; k < warm_up; ++k) order.push_back(slot_of(layout, Pass::kForward, k));
  for (std::int64_t k = 0; k + warm_up < total; ++k) {
    order.push_back(slot_of(layout, Pass::kForward, k + warm_up));
    order.push_back(slot_of(layout, Pass::kBackward, k));
  }
  for (std::int64_t k = total - warm_up; k < total; ++k) {
    order.push_back(slot_of(layout, Pass::kBackward, k));
  }
  return order;
}

}  // namespace stepcast
