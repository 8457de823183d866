// SPDX-License-Identifier: Apache-2.0
// Which stage owns which chunk of the model, and how many layers each chunk has.
#include "core/assert.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// V schedules go down the stages and back up: the last chunk sits beside the first.
bool folds(ScheduleKind schedule) {
  return schedule == ScheduleKind::kZbV || schedule == ScheduleKind::kDualPipe;
}

}  // namespace

std::int64_t stage_of_chunk(const Layout& layout, std::int64_t chunk) {
  if (folds(layout.schedule) && chunk >= layout.pp) return 2 * layout.pp - 1 - chunk;
  return chunk % layout.pp;
}

std::int64_t chunk_of(const Layout& layout, std::int64_t stage, std::int64_t local_chunk) {
  if (folds(layout.schedule) && local_chunk == 1) return 2 * layout.pp - 1 - stage;
  return local_chunk * layout.pp + stage;
}

std::vector<std::int64_t> deal_layers(std::int64_t layers, const Layout& layout) {
  if (!layout.stage_layers.empty()) return layout.stage_layers;
  const std::int64_t chunks = layout.pp * layout.virtual_stages;
  const std::int64_t embedding = layout.account_for_embedding ? 1 : 0;
  const std::int64_t loss = layout.account_for_loss ? 1 : 0;
  const std::int64_t places = layers + embedding + loss;
  STEPCAST_ASSERT(places >= chunks, "check_legality() leaves no chunk empty");
  std::vector<std::int64_t> dealt;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    dealt.push_back(places / chunks + (chunk < places % chunks ? 1 : 0));
  }
  dealt.front() -= embedding;
  dealt.back() -= loss;
  return dealt;
}

}  // namespace stepcast
