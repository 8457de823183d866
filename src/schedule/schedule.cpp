// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>

#include "core/assert.h"
#include "schedule/generators.h"

namespace stepcast {
namespace {

struct Generator {
  ScheduleKind kind;
  StageOrder (*order)(const Layout&, std::int64_t stage, std::int64_t micro_batches);
};

constexpr Generator kGenerators[] = {
    {ScheduleKind::kGpipe, gpipe_order},
    {ScheduleKind::k1F1B, one_forward_one_backward_order},
    {ScheduleKind::kInterleaved, interleaved_order},
};

}  // namespace

std::vector<StageOrder> make_schedule(const Layout& layout, std::int64_t micro_batches) {
  const Generator* found = std::ranges::find(kGenerators, layout.schedule, &Generator::kind);
  STEPCAST_ASSERT(found != std::end(kGenerators), "check_support() refuses other schedules");
  std::vector<StageOrder> orders;
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    orders.push_back(found->order(layout, stage, micro_batches));
  }
  return orders;
}

std::int64_t most_in_flight(const StageOrder& order) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const Slot& slot : order) {
    if (slot.pass == Pass::kForward) most = std::max(most, ++held);
    // A split backward keeps its activations until the weight gradient.
    if (slot.pass == Pass::kBackward || slot.pass == Pass::kWeightGradient) --held;
  }
  return most;
}

}  // namespace stepcast
