// SPDX-License-Identifier: Apache-2.0
#include "plan/order_table.h"

#include "core/work_limits.h"
#include "layout/layout.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

void count_pair(const Slot& before, const Slot& after, StageFacts& out) {
  const bool from_forward = before.pass == Pass::kForward;
  if (after.pass == Pass::kForward) {
    ++(from_forward ? out.forward_forward : out.backward_forward);
  } else {
    ++(from_forward ? out.forward_backward : out.backward_backward);
  }
}

// The fullest moment before a backward that `counts`.
template <class Counts>
void add_moment(const StageOrder& order, const StageFacts& facts, Counts counts,
                std::vector<StageFacts::Moment>& out) {
  std::vector<std::int64_t> held(facts.chunks.size(), 0);
  std::int64_t sum = 0, most = 0;
  StageFacts::Moment fullest;
  std::int32_t forward = 0;
  for (const Slot& slot : order) {
    const auto local = static_cast<std::size_t>(slot.chunk);
    if (slot.pass == Pass::kForward) {
      forward = facts.chunks[local];
      ++held[local], ++sum;
      continue;
    }
    if (sum > most && counts(facts.chunks[local])) {
      most = sum;
      fullest = {held, forward, facts.chunks[local]};
    }
    --held[local], --sum;
  }
  if (most > 0) out.push_back(std::move(fullest));
}

StageFacts facts_of(const StageOrder& order, const Layout& layout, std::int64_t stage) {
  StageFacts out;
  for (std::int64_t v = 0; v < layout.virtual_stages; ++v) {
    out.chunks.push_back(static_cast<std::int32_t>(chunk_of(layout, stage, v)));
  }
  const auto model_chunk = [&](const Slot& slot) {
    return out.chunks[static_cast<std::size_t>(slot.chunk)];
  };
  for (std::size_t i = 1; i < order.size(); ++i) count_pair(order[i - 1], order[i], out);
  out.first_chunk = model_chunk(order.front());
  out.last_chunk = model_chunk(order.back());
  const auto last = static_cast<std::int32_t>(model_chunks(layout)) - 1;
  add_moment(
      order, out, [](std::int32_t) { return true; }, out.moments);
  if (layout.virtual_stages > 1 && out.chunks.back() == last) {
    add_moment(
        order, out, [&](std::int32_t chunk) { return chunk == last; }, out.moments);
  }
  return out;
}

}  // namespace

const OrderFacts& OrderTable::facts(const LayoutCode& code, const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  LayoutCode key = code.without(
      {Field::kTp, Field::kEtp, Field::kDp, Field::kMicroBatch, Field::kZero, Field::kShardGroup,
       Field::kSequenceParallel, Field::kRecomputeMode, Field::kRecomputeLayers,
       Field::kRecomputeEvery, Field::kOrder, Field::kOverlapGradReduce, Field::kOverlapParamGather,
       Field::kOverlapTp, Field::kOverlapPp, Field::kFramework});
  key[Field::kOther] = static_cast<std::uint32_t>(scenario.micro_batches());
  return known_.get(key, [&] {
    OrderFacts out;
    const auto orders = make_schedule(layout, scenario.micro_batches());
    for (std::size_t s = 0; s < orders.size(); ++s) {
      end_if_stopped();
      out.stages.push_back(facts_of(orders[s], layout, static_cast<std::int64_t>(s)));
    }
    for (std::int64_t c = 0; c < model_chunks(layout); ++c) {
      out.stage_of.push_back(static_cast<std::int32_t>(stage_of_chunk(layout, c)));
    }
    out.layers = deal_layers(scenario.model.layers, layout);
    return out;
  });
}

}  // namespace stepcast
