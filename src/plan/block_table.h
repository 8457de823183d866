// SPDX-License-Identifier: Apache-2.0
// Blocks of the model as a forecast prices and sizes them: lowered by program/, priced by
// predict/block_cost.h, once for each set of keys that they depend on.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "plan/group_prices.h"
#include "plan/layout_code.h"
#include "predict/block_cost.h"
#include "schedule/pass.h"

namespace stepcast {

struct Block;
struct Pricing;
struct Program;
struct Scenario;

using PassCost = QueuedCost<double>;  // in seconds

PassCost cost_of(const RunCost& cost);

struct PassMemory {
  ByteCount left = 0;  // when it ends, against its start; may be negative
  ByteCount peak = 0;
};

struct PassFacts {
  PassCost cost;
  PassMemory memory;
};

struct BlockFacts {
  std::array<PassFacts, kPasses> passes;  // by Pass
  const PassFacts& pass(Pass which) const { return passes[static_cast<std::size_t>(which)]; }
};

// A kind of layer, without and with its recomputation, and no more than either.
struct LayerFacts {
  BlockFacts plain, recomputed, least;
};

// The blocks of one layout.
struct BlockSet {
  BlockFacts embedding, head;
  std::vector<LayerFacts> layers;  // by layer_kinds()
};

class BlockTable {
 public:
  // `scenario` has the layout that blocks() is asked for, at the time it is asked.
  BlockTable(const Scenario& scenario, GroupPrices& groups)
      : scenario_(scenario), groups_(groups) {}

  // Which groups communicate in the blocks of this layout.
  const std::vector<AxisGroup>& groups(const LayoutCode& code);
  // `places`: where the ranks of each of them lie.
  const BlockSet& blocks(const LayoutCode& code, const std::vector<PlaceId>& places,
                         const Pricing& pricing);

 private:
  BlockFacts facts_of(const Block& block, const BlockCosts& costs) const;
  Program lower_blocks() const;
  BlockSet make(const std::vector<AxisGroup>& groups, const std::vector<PlaceId>& places,
                const Pricing& pricing) const;

  const Scenario& scenario_;
  GroupPrices& groups_;
  Remembered<std::vector<AxisGroup>> known_groups_;
  std::map<std::vector<PlaceId>, std::uint32_t> arrangements_;  // numbered as they come
  Remembered<BlockSet> known_;
};

}  // namespace stepcast
