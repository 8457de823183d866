// SPDX-License-Identifier: Apache-2.0
#include "plan/bound.h"

#include <algorithm>
#include <cmath>

#include "layout/pipeline.h"
#include "layout/recomputed_layers.h"
#include "memory/device_footprint.h"
#include "predict/pricing.h"
#include "program/layer_kind.h"
#include "program/role_builder.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Sums are taken in another order than the replay's, whose clock rounds each task to a picosecond.
constexpr double kRounding = 1 - 1e-8;

// The highest point of blocks that run one after another, and what they leave.
class Level {
 public:
  void run(const PassMemory& block, std::int64_t times) {
    if (times <= 0) return;
    const ByteCount rise = std::max<ByteCount>(0, (times - 1) * block.left);
    peak = std::max(peak, left + rise + block.peak);
    left += times * block.left;
  }
  ByteCount left = 0, peak = 0;
};

// Collectives are of the cluster, whatever the framework.
const Pricing& any_of(const PricingByFramework& pricing) {
  const auto all = all_frameworks();
  return *pricing[*std::ranges::find_if(all, [&](Framework f) { return pricing[f] != nullptr; })];
}

}  // namespace

BoundMaker::BoundMaker(const Scenario& scenario, const PricingByFramework& pricing)
    : scenario_(scenario),
      scratch_(scenario),
      pricing_(pricing),
      groups_(any_of(pricing).collectives),
      block_table_(scenario, groups_),
      step_table_(scenario, scratch_, groups_) {
  const std::vector<LayerKind> kinds = layer_kinds(scenario);
  for (std::int64_t layer = 0; kinds.size() > 1 && layer < scenario.model.layers; ++layer) {
    const auto found = std::ranges::find(kinds, kind_of(scenario, layer));
    kind_of_layer_.push_back(static_cast<std::size_t>(found - kinds.begin()));
  }
}

// Recomputed layers of one kind come first, unless only every n-th is recomputed.
std::vector<BoundMaker::Row> BoundMaker::rows(const BlockSet& blocks,
                                              const ChunkLayers& layers) const {
  if (kind_of_layer_.empty()) {
    const LayerFacts& all = blocks.layers.front();
    if (layers.any_recompute) return {{&all.least, layers.count}};
    return {{&all.recomputed, layers.recomputed}, {&all.plain, layers.count - layers.recomputed}};
  }
  std::vector<Row> out;
  for (std::int64_t i = 0; i < layers.count; ++i) {
    const std::int64_t layer = layers.first_layer + i;
    const LayerFacts& own = blocks.layers[kind_of_layer_[static_cast<std::size_t>(layer)]];
    const bool plain = recompute_of(scenario_.layout.recompute, layer, i) == RecomputeMode::kNone;
    const BlockFacts* block = layers.any_recompute ? &own.least
                              : plain              ? &own.plain
                                                   : &own.recomputed;
    if (out.empty() || out.back().block != block) out.push_back({block, 0});
    ++out.back().times;
  }
  return out;
}

bool BoundMaker::are_alike(const ChunkLayers& a, const ChunkLayers& b) const {
  if (a.count != b.count || a.recomputed != b.recomputed) return false;
  if (kind_of_layer_.empty()) return true;
  const auto kinds = kind_of_layer_.begin();
  return scenario_.layout.recompute.every == 1 &&
         std::equal(kinds + a.first_layer, kinds + a.first_layer + a.count, kinds + b.first_layer);
}

BoundMaker::Chunk BoundMaker::make_chunk(const BlockSet& blocks, const ChunkLayers& layers,
                                         bool first, bool last) const {
  // If only every n-th layer is recomputed, the bound leaves their places open.
  const bool mixed = scenario_.layout.recompute.every > 1 && layers.recomputed > 0 &&
                     layers.recomputed < layers.count;
  const std::vector<Row> own = rows(blocks, layers);
  Chunk out;
  Level forward, backward;
  const auto run_forward = [&](const BlockFacts& block, std::int64_t times) {
    const PassFacts& pass = block.pass(Pass::kForward);
    out.forward.append(pass.cost, static_cast<double>(times));
    forward.run(pass.memory, times);
  };
  const auto run_backward = [&](const BlockFacts& block, std::int64_t times) {
    const PassFacts& pass = block.pass(Pass::kBackward);
    out.backward.append(pass.cost, static_cast<double>(times));
    backward.run(pass.memory, times);
  };
  if (first) run_forward(blocks.embedding, 1);
  for (const Row& row : own) run_forward(*row.block, row.times);
  if (last) {
    run_forward(blocks.head, 1);
    run_backward(blocks.head, 1);
  }
  for (auto row = own.rbegin(); row != own.rend(); ++row) run_backward(*row->block, row->times);
  if (first) run_backward(blocks.embedding, 1);
  if (mixed) {
    out.forward.floor = out.forward.gpu;
    out.backward.floor = out.backward.gpu;
    forward.peak = backward.peak = 0;
  }
  if (scenario_.layout.offload.activations > 0) return out;  // where they lie is not known here
  out.saved = forward.left;
  out.forward_peak = forward.peak;
  out.backward_peak = backward.peak;
  return out;
}

// Most chunks are like the one before them.
void BoundMaker::make_chunks(const OrderFacts& order, const Places& places, bool any_recompute) {
  const std::size_t count = order.layers.size();
  chunks_.resize(count);
  ChunkLayers before{};
  const std::vector<AxisGroup>& groups = block_table_.groups(code_);
  const std::vector<PlaceId>* lay_before = nullptr;
  for (std::size_t c = 0; c < count; ++c) {
    ChunkLayers layers{before.first_layer + before.count, order.layers[c], 0, any_recompute};
    if (!any_recompute) {
      layers.recomputed =
          recomputed_layers(scenario_.layout.recompute, layers.first_layer, layers.count);
    }
    const std::vector<PlaceId>& lie =
        places.of(groups, static_cast<std::size_t>(order.stage_of[c]));
    const bool like_before =
        c > 1 && c + 1 < count && are_alike(layers, before) && lie == *lay_before;
    if (like_before) {
      chunks_[c] = chunks_[c - 1];
    } else {
      chunks_[c] =
          make_chunk(block_table_.blocks(code_, lie, pricing()), layers, c == 0, c + 1 == count);
    }
    before = layers;
    lay_before = &lie;
  }
}

// With scatter/gather the received shares are gathered before the stage runs.
const BoundMaker::Hops& BoundMaker::hops(const Places& places) {
  LayoutCode key;
  for (const Field field : {Field::kTp, Field::kCp, Field::kPp, Field::kDp, Field::kOrder,
                            Field::kMicroBatch, Field::kSequenceParallel, Field::kFramework}) {
    key[field] = code_.of(field);
  }
  return hops_.get(key, [&] {
    const Shape shape(scenario_);
    const ByteCount bytes = boundary_bytes(scenario_, shape);
    const bool gathers =
        scenario_.rules.scatter_gather_p2p && !shape.sequence_parallel && shape.tp > 1;
    const std::size_t stages = places.first.size();
    const auto gather = [&](std::size_t stage) {
      if (!gathers) return 0.0;
      return groups_
          .time(places.of(AxisGroup::kTensor, stage),
                {CollectiveKind::kAllGather, shape.rows * shape.hidden * shape.element, shape.type})
          .value();
    };
    const auto send = [&](std::size_t from, std::size_t to) {
      if (stages < 2) return Hops::Times{};
      const auto price =
          pricing().collectives.price_send(bytes, places.first[from], places.first[to]);
      const double leaves = price.time().value();
      return Hops::Times{leaves, leaves + gather(to)};
    };
    Hops out;
    for (std::size_t s = 0; s < stages; ++s) {
      out.next.push_back(send(s, (s + 1) % stages));
      out.previous.push_back(send((s + 1) % stages, s));
    }
    return out;
  });
}

BoundMaker::Hops::Times BoundMaker::hop(const Hops& hops, std::int32_t from,
                                        std::int32_t to) const {
  if (from == to) return {};
  const auto stages = static_cast<std::int32_t>(hops.next.size());
  if (to == (from + 1) % stages) return hops.next[static_cast<std::size_t>(from)];
  return hops.previous[static_cast<std::size_t>(to)];
}

// Behind a transfer that the host waits for, a run starts as it is issued.
double BoundMaker::run(const PassCost& cost, bool received) const {
  const bool synchronous =
      received && scenario_.rules.host_sync_after_p2p && !scenario_.layout.overlap.pp;
  return synchronous ? std::max(cost.gpu, cost.floor) : cost.gpu;
}

// The time from the start of a stage's first forward to the end of its last backward: all its
// passes, and between them the waits of its compute stream where transfers are not overlapped, or
// `extra` seconds of other kernels, beside which a message may travel.
double BoundMaker::chain(const OrderFacts& order, const Hops& hops, std::size_t stage,
                         double extra) const {
  const Layout& layout = scenario_.layout;
  const StageFacts& facts = order.stages[stage];
  const auto m = static_cast<double>(scenario_.micro_batches());
  const auto last = static_cast<std::int32_t>(chunks_.size()) - 1;
  double sum = 0, received = 0, first_received = 0;
  const auto between = [&](std::int32_t from, std::int32_t to) {
    return hop(hops, order.stage_of[static_cast<std::size_t>(from)],
               order.stage_of[static_cast<std::size_t>(to)]);
  };
  for (const std::int32_t c : facts.chunks) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
    sum += m * (run(chunk.forward, c > 0) + run(chunk.backward, c < last));
    if (layout.overlap.pp || layout.pp == 1) continue;
    const double down = c > 0 ? between(c - 1, c).arrives : 0;
    const double up = c < last ? between(c + 1, c).arrives : 0;
    received += m * (down + up);
    if (c == facts.first_chunk) first_received = down;
  }
  if (layout.overlap.pp || layout.pp == 1) return sum + extra;
  // Receives are issued behind the work before them: each pass but the first waits for its own.
  if (layout.virtual_stages > 1) return sum + std::max(received - first_received, extra);
  // A stage waits for its sends too while it receives.
  const std::int32_t c = facts.first_chunk;
  const Hops::Times from_above = c > 0 ? between(c - 1, c) : Hops::Times{};
  const Hops::Times to_above = c > 0 ? between(c, c - 1) : Hops::Times{};
  const Hops::Times from_below = c < last ? between(c + 1, c) : Hops::Times{};
  const Hops::Times to_below = c < last ? between(c, c + 1) : Hops::Times{};
  const auto gaps = [](std::int64_t count, const Hops::Times& sent, const Hops::Times& got) {
    return static_cast<double>(count) * std::max(sent.leaves, got.arrives);
  };
  return sum + std::max(extra, gaps(facts.forward_forward, to_below, from_above) +
                                   gaps(facts.forward_backward, to_below, from_below) +
                                   gaps(facts.backward_forward, to_above, from_above) +
                                   gaps(facts.backward_backward, to_above, from_below));
}

double BoundMaker::time(const OrderFacts& order, const StepEnds& ends, const Hops& between) {
  const auto m = static_cast<double>(scenario_.micro_batches());
  const double units = m / static_cast<double>(ends.unit) - 1;
  const auto last = static_cast<std::int32_t>(chunks_.size()) - 1;
  // Bounds the time from the barrier to a stage's first forward, through other stages' chunks too.
  const auto opening = [&](std::size_t s) {
    const StageEnds& end = ends.stages[s];
    PassCost cost = end.update;
    cost.append(end.begin);
    const double zero_and_gather = end.update.gpu + end.begin_gather;
    return std::max({cost.gpu, ends.host_meets ? cost.floor : 0.0, zero_and_gather});
  };
  const double opening_0 = opening(0), closing_0 = ends.stages[0].reduce;
  double best = 0;
  double down = 0;  // to the first forward of model chunk c
  double up = 0;    // from the last backward of chunk c to the end of that of chunk 0
  to_.resize(chunks_.size());
  from_.resize(chunks_.size());
  for (std::int32_t c = 0; c <= last; ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (c > 0) {
      down += run(chunks_[i - 1].forward, c - 1 > 0) +
              hop(between, order.stage_of[i - 1], order.stage_of[i]).arrives;
      up += hop(between, order.stage_of[i], order.stage_of[i - 1]).arrives +
            run(chunks_[i - 1].backward, true);
    }
    to_[i] = down;
    from_[i] = up;
  }
  for (std::size_t s = 0; s < order.stages.size(); ++s) {
    const StageFacts& facts = order.stages[s];
    const StageEnds& end = ends.stages[s];
    const double passes = chain(order, between, s, end.extra_first + units * end.extra_more);
    const double from_top = opening_0 + to_[static_cast<std::size_t>(facts.first_chunk)];
    const double to_top = from_[static_cast<std::size_t>(facts.last_chunk)] + closing_0;
    const double own = opening(s);
    if (ends.has_barrier) {
      best = std::max(
          best, std::max(from_top, own) + passes + std::max(to_top, end.reduce) + ends.barrier);
    } else {
      best = std::max({best, from_top + passes + to_top, own + passes + end.reduce});
    }
    double host = end.update.host + end.begin.host;
    for (const std::int32_t c : facts.chunks) {
      const Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
      host += m * (chunk.forward.host + chunk.backward.host);
    }
    best = std::max({best, host + end.norm_host, end.gather_first + units * end.gather_more,
                     end.scatter_first + units * end.scatter_more});
  }
  return best * kRounding;
}

// Looks at the backward that finds most chunks in flight, and at the forward before it.
ByteCount BoundMaker::peak(const OrderFacts& order, const StepEnds& ends) const {
  const Shape shape(scenario_);
  const ByteCount boundary = shape.rows * shape.hidden * shape.element;
  const ByteCount tokens = shape.tokens * size_of(DataType::kInt64);
  const auto last = static_cast<std::int32_t>(chunks_.size()) - 1;
  const auto saved = [&](std::int32_t c) {
    return chunks_[static_cast<std::size_t>(c)].saved + (c > 0 ? boundary : tokens) -
           (c < last ? boundary : 0);
  };
  ByteCount out = 0;
  for (std::size_t s = 0; s < order.stages.size(); ++s) {
    const StageFacts& facts = order.stages[s];
    for (const StageFacts::Moment& moment : facts.moments) {
      ByteCount held = ends.stages[s].persistent;
      for (std::size_t v = 0; v < facts.chunks.size(); ++v) {
        held += moment.held[v] * saved(facts.chunks[v]);
      }
      const std::int32_t f = moment.forward_chunk, b = moment.backward_chunk;
      const Chunk& forward = chunks_[static_cast<std::size_t>(f)];
      const Chunk& backward = chunks_[static_cast<std::size_t>(b)];
      out = std::max({out, held + backward.backward_peak + (b < last ? boundary : 0),
                      held - saved(f) + (f > 0 ? boundary : tokens) + forward.forward_peak});
    }
  }
  return out;
}

// Weight gradients in passes of their own wait for nobody, and a model that comes back up hands on
// from a stage to itself. The chains above know of neither, so nothing is said of such an order,
// nor of one whose passes alone would fill hundreds of megabytes: a forecast of it needs more
// memory than it may have.
bool BoundMaker::says_nothing() const {
  constexpr double kMostPasses = 1.6e7;
  const Layout& layout = scenario_.layout;
  const double passes = 2.0 * static_cast<double>(scenario_.micro_batches()) *
                        static_cast<double>(layout.pp) * static_cast<double>(layout.virtual_stages);
  if (passes > kMostPasses) return true;
  const Schedule& schedule = rules_of(layout.schedule);
  const bool apart = schedule.splits_backward || layout.defer_head_wgrad > 0;
  return apart || pipeline_of(layout).placement == Placement::kFolded;
}

ByteCount BoundMaker::held() {
  if (says_nothing()) return 0;
  const std::vector<ByteCount>& held = step_table_.persistent(LayoutCode(scenario_));
  return reserved_bytes(scenario_, *std::ranges::max_element(held));
}

std::vector<const BlockSet*> BoundMaker::blocks_by_stage() {
  code_ = LayoutCode(scenario_);
  const Places& places = step_table_.places(code_);
  const std::vector<AxisGroup>& groups = block_table_.groups(code_);
  std::vector<const BlockSet*> out;
  for (std::size_t stage = 0; stage < places.first.size(); ++stage) {
    out.push_back(&block_table_.blocks(code_, places.of(groups, stage), pricing()));
  }
  return out;
}

Bound BoundMaker::relaxed(bool any_recompute) {
  if (says_nothing()) return {};
  code_ = LayoutCode(scenario_);
  const OrderFacts& order = order_table_.facts(code_, scenario_);
  const std::vector<ByteCount>& held = step_table_.persistent(code_);
  no_ends_.stages.resize(held.size());
  for (std::size_t stage = 0; stage < held.size(); ++stage) {
    no_ends_.stages[stage].persistent = held[stage];
  }
  no_hops_.next.resize(held.size());
  no_hops_.previous.resize(held.size());
  make_chunks(order, step_table_.places(code_), any_recompute);
  return {time(order, no_ends_, no_hops_), reserved_bytes(scenario_, peak(order, no_ends_))};
}

Bound BoundMaker::bound() {
  if (says_nothing()) return {};
  code_ = LayoutCode(scenario_);
  const OrderFacts& order = order_table_.facts(code_, scenario_);
  const Places& places = step_table_.places(code_);
  const StepEnds& ends = step_table_.ends(code_, places, pricing());
  make_chunks(order, places, false);
  return {time(order, ends, hops(places)),
          reserved_bytes(scenario_, peak(order, ends)) + ends.framework};
}

}  // namespace stepcast
