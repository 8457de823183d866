// SPDX-License-Identifier: Apache-2.0
#include "layout/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/assert.h"
#include "layout/layout.h"
#include "layout/nearest.h"
#include "layout/scenario.h"
#include "schedule/schedule.h"

namespace stepcast {

Pipeline pipeline_of(const Layout& layout, std::int64_t micro_batches) {
  const Schedule& schedule = rules_of(layout.schedule);
  return {layout.pp, layout.virtual_stages, micro_batches,
          schedule.from_file ? layout.file_form.placement : schedule.placement,
          schedule.whole_groups ? layout.micro_batch_group : 0};
}

bool feeds_both_ends(const Layout& layout) {
  return pipeline_of(layout).placement == Placement::kMirrored;
}

std::int64_t model_chunks(const Layout& layout) {
  if (feeds_both_ends(layout)) return layout.pp;
  return capped_product({layout.pp, layout.virtual_stages});
}

std::string words_of_chunks(const Layout& layout) {
  const std::int64_t chunks = model_chunks(layout);
  if (feeds_both_ends(layout)) return fmt::format("pp = {} chunks", chunks);
  return fmt::format("pp*virtual_stages = {}*{} = {} chunks", layout.pp, layout.virtual_stages,
                     chunks);
}

std::int64_t stage_of_chunk(const Layout& layout, std::int64_t chunk) {
  return stage_of_chunk(pipeline_of(layout), chunk, 0);
}

std::int64_t chunk_of(const Layout& layout, std::int64_t stage, std::int64_t local_chunk) {
  return chunk_of(pipeline_of(layout), stage, local_chunk);
}

std::int64_t stage_of_last_chunk(const Layout& layout) {
  return stage_of_chunk(layout, model_chunks(layout) - 1);
}

bool ends_meet(const Layout& layout) {
  return stage_of_last_chunk(layout) == 0 || feeds_both_ends(layout);
}

std::vector<std::int64_t> deal_layers(std::int64_t layers, const Layout& layout) {
  if (!layout.stage_layers.empty()) return layout.stage_layers;
  const std::int64_t chunks = model_chunks(layout);
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

bool splits_backward(const Layout& layout) {
  const Schedule& schedule = rules_of(layout.schedule);
  return schedule.from_file ? layout.file_form.splits_backward : schedule.splits_backward;
}

std::vector<StageOrder> make_schedule(const Layout& layout, std::int64_t micro_batches) {
  const Pipeline pipeline = pipeline_of(layout, micro_batches);
  if (!layout.schedule_text) return make_orders(layout.schedule, pipeline);
  auto orders = from_csv(*layout.schedule_text, pipeline, layout.schedule_file);
  STEPCAST_ASSERT(orders.has_value(), "an order that was read or made before");
  return std::move(*orders);
}

}  // namespace stepcast
