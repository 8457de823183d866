// SPDX-License-Identifier: Apache-2.0
#include "plan/order_table.h"

#include <algorithm>

#include "schedule/schedule.h"

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

template <class Is>
StageFacts::Receives receives_of(const StageOrder& order, const StageFacts& facts, Is receives) {
  StageFacts::Receives out;
  out.forwards_behind.assign(facts.chunks.size(), 0);
  out.backwards_behind.assign(facts.chunks.size(), 0);
  std::int64_t next = -1;  // the pass that receives next, walking backwards
  for (auto i = static_cast<std::int64_t>(order.size()); i-- > 0;) {
    const Slot& slot = order[static_cast<std::size_t>(i)];
    if (next >= 0 && i >= facts.warm_up) out.reach = std::max(out.reach, next - i);
    if (!out.any) {
      ++(slot.pass == Pass::kForward ? out.forwards_behind
                                     : out.backwards_behind)[static_cast<std::size_t>(slot.chunk)];
    }
    if (!receives(slot)) continue;
    out.any = true;
    next = i;
  }
  return out;
}

StageFacts facts_of(const StageOrder& order, const Layout& layout, std::int64_t stage) {
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
  out.forward_receives = receives_of(order, out, [&](const Slot& slot) {
    return slot.pass == Pass::kForward && model_chunk(slot) > 0;
  });
  out.backward_receives = receives_of(order, out, [&](const Slot& slot) {
    return slot.pass != Pass::kForward && model_chunk(slot) < last;
  });
  return out;
}

}  // namespace

// As lower() deals modes to layers.
std::int64_t recomputed_layers(const Recompute& recompute, std::int64_t first, std::int64_t count) {
  if (recompute.mode == RecomputeMode::kNone) return 0;
  const std::int64_t last = recompute.layers > 0 ? std::min(count, recompute.layers) : count;
  if (recompute.every <= 1) return last;
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < last; ++i) out += (first + i) % recompute.every == 0 ? 1 : 0;
  return out;
}

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
      out.stages.push_back(facts_of(orders[s], layout, static_cast<std::int64_t>(s)));
    }
    for (std::int64_t c = 0; c < layout.pp * layout.virtual_stages; ++c) {
      out.stage_of.push_back(static_cast<std::int32_t>(stage_of_chunk(layout, c)));
    }
    out.layers = deal_layers(scenario.model.layers, layout);
    return out;
  });
}

}  // namespace stepcast
