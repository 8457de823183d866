// SPDX-License-Identifier: Apache-2.0
// A bound on a layout's forecast in closed form: no replay of it has a shorter step or a lower peak
// of memory (docs/design/012-search-of-layouts.md). It takes about a microsecond.
#pragma once

#include <array>
#include <vector>

#include "layout/scenario.h"
#include "plan/block_table.h"
#include "plan/group_prices.h"
#include "plan/order_table.h"
#include "plan/pricing_by_framework.h"
#include "plan/step_table.h"

namespace stepcast {

struct Bound {
  double time_s = 0;
  ByteCount device_bytes = 0;  // as Prediction::peak_device counts
};

class BoundMaker {
 public:
  // `scenario` is the caller's scratch: bound() is of the layout that stands in it then.
  BoundMaker(const Scenario& scenario, const PricingByFramework& pricing);

  Bound bound();

  // No layout with these blocks and this schedule has a lower bound, whatever is around its passes
  // and between its stages. `any_recompute`: each layer may be recomputed or not. The device holds
  // framework_bytes() beside it.
  Bound relaxed(bool any_recompute);

  // Bytes that its fullest stage holds through the whole step; 0 of a layout that has no bound.
  ByteCount held();

  // Blocks of the layout by stage: layouts that share all of them have passes that cost as much.
  std::vector<const BlockSet*> blocks_by_stage();

 private:
  // Passes of one chunk of the model.
  struct Chunk {
    PassCost forward, backward;
    ByteCount saved = 0;         // from its forward to its backward
    ByteCount forward_peak = 0;  // above what lives before it
    ByteCount backward_peak = 0;
  };
  // Transfers between neighbours, by stage: to the one after it, and from there to it. A receiver
  // has its message after `arrives`, the sender is done after `leaves`.
  struct Hops {
    struct Times {
      double leaves = 0, arrives = 0;
    };
    std::vector<Times> next, previous;
  };

  bool says_nothing() const;
  void make_chunks(const OrderFacts& order, const Places& places, bool any_recompute);
  // Equal layers of a chunk in a row, in the order of its forward.
  struct Row {
    const BlockFacts* block;
    std::int64_t times;
  };
  // The layers of a chunk that begins behind `first_layer` others.
  struct ChunkLayers {
    std::int64_t first_layer, count, recomputed;
    bool any_recompute;  // of each layer
  };
  Chunk make_chunk(const BlockSet& blocks, const ChunkLayers& layers, bool first, bool last) const;
  std::vector<Row> rows(const BlockSet& blocks, const ChunkLayers& layers) const;
  bool are_alike(const ChunkLayers& a, const ChunkLayers& b) const;
  const Hops& hops(const Places& places);
  Hops::Times hop(const Hops& hops, std::int32_t from, std::int32_t to) const;
  double time(const OrderFacts& order, const StepEnds& ends, const Hops& between);
  double chain(const OrderFacts& order, const Hops& hops, std::size_t stage, double extra) const;
  double run(const PassCost& cost, bool received) const;
  ByteCount peak(const OrderFacts& order, const StepEnds& ends) const;
  const Pricing& pricing() const { return *pricing_[scenario_.training.framework]; }

  const Scenario& scenario_;
  Scenario scratch_;
  const PricingByFramework& pricing_;
  GroupPrices groups_;
  BlockTable block_table_;
  OrderTable order_table_;
  StepTable step_table_;
  Remembered<Hops> hops_;
  LayoutCode code_;
  std::vector<std::size_t> kind_of_layer_;  // its place among layer_kinds(); empty: one for all
  // The chunks of the present layout, by model chunk.
  std::vector<Chunk> chunks_;
  std::vector<double> to_, from_;  // scratch
  StepEnds no_ends_;               // of relaxed(), but for what they hold
  Hops no_hops_;
};

}  // namespace stepcast
