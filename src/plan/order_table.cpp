// SPDX-License-Identifier: Apache-2.0
#include "plan/order_table.h"

#include <algorithm>

#include "layout/pipeline.h"

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

// Walks of several stages' orders at once.
struct Orders {
  const std::vector<StageOrder>& all;
  const Layout& layout;

  std::int64_t chunk(std::int64_t stage, const Slot& slot) const {
    return chunk_of(layout, stage, slot.chunk);
  }
  // The model chunk that hands this pass its input; outside the model: none.
  std::int64_t source(std::int64_t stage, const Slot& slot) const {
    return chunk(stage, slot) + (slot.pass == Pass::kForward ? -1 : 1);
  }
  bool receives(std::int64_t stage, const Slot& slot) const {
    const std::int64_t from = source(stage, slot);
    return from >= 0 && from < layout.pp * layout.virtual_stages;
  }
  // Where the pass of a chunk and micro-batch stands on its stage.
  std::int64_t place(std::int64_t stage, std::int64_t chunk_in_model, const Slot& like) const {
    const StageOrder& order = all[static_cast<std::size_t>(stage)];
    const auto found = std::find_if(order.begin(), order.end(), [&](const Slot& slot) {
      return (slot.pass == Pass::kForward) == (like.pass == Pass::kForward) &&
             slot.micro_batch == like.micro_batch && chunk(stage, slot) == chunk_in_model;
    });
    return found - order.begin();
  }
  // Passes of `stage` that have ended before the message for `slot` can be sent: the sender has run
  // what it got from this stage before.
  std::int64_t ended_before(std::int64_t stage, const Slot& slot) const {
    const std::int64_t from = source(stage, slot);
    const std::int64_t sender = stage_of_chunk(layout, from);
    const StageOrder& order = all[static_cast<std::size_t>(sender)];
    for (std::int64_t i = place(sender, from, slot) + 1; i-- > 0;) {
      const Slot& pass = order[static_cast<std::size_t>(i)];
      if (!receives(sender, pass)) continue;
      const std::int64_t chunk_there = source(sender, pass);
      if (stage_of_chunk(layout, chunk_there) != stage) continue;
      return place(stage, chunk_there, pass) + 1;
    }
    return 0;
  }
};

StageFacts::Receives receives_of(const Orders& orders, std::int64_t stage, bool forward,
                                 const StageFacts& facts) {
  StageFacts::Receives out;
  out.forwards_behind.assign(facts.chunks.size(), 0);
  out.backwards_behind.assign(facts.chunks.size(), 0);
  const StageOrder& order = orders.all[static_cast<std::size_t>(stage)];
  std::int64_t next = -1, held = 0;  // the pass that receives next, walking backwards
  for (auto i = static_cast<std::int64_t>(order.size()); i-- > 0;) {
    const Slot& slot = order[static_cast<std::size_t>(i)];
    if (next >= 0 && i >= facts.warm_up) out.reach = std::max(out.reach, next - i);
    if ((slot.pass == Pass::kForward) != forward || !orders.receives(stage, slot)) continue;
    if (!out.any) held = orders.ended_before(stage, slot);
    out.any = true;
    next = i;
  }
  for (auto i = static_cast<std::size_t>(held); i < order.size(); ++i) {
    ++(order[i].pass == Pass::kForward
           ? out.forwards_behind
           : out.backwards_behind)[static_cast<std::size_t>(order[i].chunk)];
  }
  return out;
}

StageFacts facts_of(const std::vector<StageOrder>& orders, const Layout& layout,
                    std::int64_t stage) {
  const StageOrder& order = orders[static_cast<std::size_t>(stage)];
  StageFacts out;
  while (out.warm_up < static_cast<std::int64_t>(order.size()) &&
         order[static_cast<std::size_t>(out.warm_up)].pass == Pass::kForward) {
    ++out.warm_up;
  }
  for (std::int64_t v = 0; v < layout.virtual_stages; ++v) {
    out.chunks.push_back(static_cast<std::int32_t>(chunk_of(layout, stage, v)));
  }
  const auto model_chunk = [&](const Slot& slot) {
    return out.chunks[static_cast<std::size_t>(slot.chunk)];
  };
  for (std::size_t i = 1; i < order.size(); ++i) count_pair(order[i - 1], order[i], out);
  out.first_chunk = model_chunk(order.front());
  out.last_chunk = model_chunk(order.back());
  const auto last = static_cast<std::int32_t>(layout.pp * layout.virtual_stages) - 1;
  add_moment(
      order, out, [](std::int32_t) { return true; }, out.moments);
  if (layout.virtual_stages > 1 && out.chunks.back() == last) {
    add_moment(
        order, out, [&](std::int32_t chunk) { return chunk == last; }, out.moments);
  }
  out.forward_receives = receives_of({orders, layout}, stage, true, out);
  out.backward_receives = receives_of({orders, layout}, stage, false, out);
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
      out.stages.push_back(facts_of(orders, layout, static_cast<std::int64_t>(s)));
    }
    for (std::int64_t c = 0; c < layout.pp * layout.virtual_stages; ++c) {
      out.stage_of.push_back(static_cast<std::int32_t>(stage_of_chunk(layout, c)));
    }
    out.layers = deal_layers(scenario.model.layers, layout);
    return out;
  });
}

}  // namespace stepcast
