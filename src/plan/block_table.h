// SPDX-License-Identifier: Apache-2.0
// Blocks of the model as a forecast prices and sizes them: lowered by program/, priced by
// predict/block_cost.h, once for each set of keys that they depend on.
#pragma once

#include <array>

#include "plan/group_prices.h"
#include "plan/layout_code.h"
#include "predict/block_cost.h"
#include "program/program.h"

namespace stepcast {

using PassCost = QueuedCost<double>;  // in seconds

PassCost cost_of(const RunCost& cost);

struct PassMemory {
  ByteCount left = 0;  // when it ends, against its start; may be negative
  ByteCount peak = 0;
};

struct BlockFacts {
  PassCost forward, backward;
  PassMemory forward_memory, backward_memory;
};

// The blocks of one layout: layers without and with its recomputation.
struct BlockSet {
  BlockFacts embedding, head, plain, recomputed;
};

class BlockTable {
 public:
  // `scenario` has the layout that blocks() is asked for, at the time it is asked.
  BlockTable(const Scenario& scenario, GroupPrices& groups)
      : scenario_(scenario), groups_(groups) {}

  // `tensor_group`: where the ranks of the group lie.
  const BlockSet& blocks(const LayoutCode& code, PlaceId tensor_group, const Pricing& pricing);

 private:
  BlockFacts facts_of(const Block& block, const BlockCosts& costs) const;
  BlockSet make(PlaceId tensor_group, const Pricing& pricing);

  const Scenario& scenario_;
  GroupPrices& groups_;
  Remembered<BlockSet> known_;
};

}  // namespace stepcast
