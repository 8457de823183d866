// SPDX-License-Identifier: Apache-2.0
// Prices of every run instruction of every rank class.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "predict/block_cost.h"
#include "predict/symmetry.h"
#include "program/walk.h"

namespace stepcast {

class RunCosts {
 public:
  // With `alone` ranks run without the others, and collectives cost nothing.
  RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
           const Symmetry& symmetry, const KernelCosts& kernels, const CollectiveCosts& collectives,
           bool alone = false);

  // `instruction` is one of role(rank_class).instructions.
  const RunCost& run(std::int32_t rank_class, const Instruction& instruction) const;
  // Its operations one by one, block by block in order.
  using PricedBlock = std::vector<PricedOperation>;
  std::vector<PricedBlock> operations(std::int32_t rank_class,
                                      const Instruction& instruction) const;
  // Behind a part of a pass: until the last member has come to the collective that follows it
  // (OperationRange::meets).
  RunCost meeting(std::int32_t rank_class, const Instruction& instruction) const;
  const Role& role(std::int32_t rank_class) const {
    return *classes_[static_cast<std::size_t>(rank_class)].role;
  }
  // The host's time to issue a collective, a transfer between stages or a copy.
  Seconds launch(const Instruction& instruction) const;

 private:
  // Rank classes of one stage whose groups of collectives inside blocks are placed alike.
  struct Table {
    const Role* role;
    std::int32_t placement;
    std::vector<std::int32_t> cost_of;  // by instruction; into costs
    std::vector<RunCost> costs;
  };
  struct RankClassEntry {
    const Role* role;
    std::int32_t table;
  };

  // What every block costs, by BlockId and Pass.
  struct BlockPrices {
    std::vector<std::array<RunCost, kPasses>> passes;
    const RunCost& of(const BlockVisit& at) const {
      return passes[at.block.index()][static_cast<std::size_t>(at.pass)];
    }
    // `what`: an instruction, or the pass that one runs.
    template <class Run>
    RunCost run(const Role& role, const Run& what) const {
      RunCost sum;
      for_each_block(role, what, [&](const BlockVisit& at) { sum.append(of(at)); });
      return sum;
    }
  };
  BlockPrices price_blocks() const;
  void add_class(const Role& role, std::int32_t placement, const BlockPrices& prices);
  // The whole pass over a block, priced once.
  const PricedBlock& priced(std::int32_t placement, const BlockVisit& at) const;
  std::vector<PricedBlock> price_each(const Table& table, const Instruction& what) const;
  RunCost price_meeting(const Table& table, const Instruction& what) const;
  RunCost price_part(const Table& table, const Instruction& what) const;
  RunCost price_beside(const Table& table, const RunPass& run, const BlockPrices& prices) const;
  RunCost price_pair(const Table& table, const RunPass& forward, const RunPass& backward,
                     const BlockPrices& prices) const;
  const Table& table_of(std::int32_t rank_class) const {
    return tables_[static_cast<std::size_t>(classes_[static_cast<std::size_t>(rank_class)].table)];
  }

  const Program& program_;
  mutable BlockCosts block_costs_;  // remembers the groups that it prices for
  mutable std::map<std::tuple<std::int32_t, BlockId, Pass>, PricedBlock> priced_;  // by placement
  bool alone_;
  std::vector<std::vector<GroupPlacement>> placements_;
  std::vector<Table> tables_;
  std::vector<RankClassEntry> classes_;
};

}  // namespace stepcast
