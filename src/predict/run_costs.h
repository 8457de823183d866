// SPDX-License-Identifier: Apache-2.0
// Prices of every run instruction of every rank class.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "predict/block_cost.h"
#include "predict/block_replay.h"
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
  // The blocks that it runs, operation by operation, in order. The first of two passes
  // that alternate runs both (program/pass_pair.h), and the second nothing.
  using PricedBlock = std::vector<PricedOperation>;
  std::vector<const PricedBlock*> blocks(std::int32_t rank_class,
                                         const Instruction& instruction) const;
  // The instruction as tasks of the engine. Collectives of `groups` load links.
  const PassTasks& tasks(std::int32_t rank_class, const Instruction& instruction,
                         const std::vector<AxisGroup>& groups, bool each_operation) const;
  // The part of the pair's time in which a pass that alternates with another one runs alone where
  // its time is drawn; 1 of other instructions.
  double share_of_pair(std::int32_t rank_class, const Instruction& instruction) const;
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
    std::vector<double> shares;  // by cost: of the time of a pair
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
  // A rank's groups, and what they share with their siblings.
  struct Placement {
    std::vector<GroupPlacement> groups;
    std::shared_ptr<const SiblingLinks> links;
  };
  BlockPrices price_blocks(const Placement& placement) const;
  void use(std::int32_t placement) const {
    const auto& [groups, links] = placements_[static_cast<std::size_t>(placement)];
    block_costs_.use_groups(groups, links);
  }
  void add_class(const Role& role, std::int32_t placement, const BlockPrices& prices);
  // The whole pass over a block, priced once.
  const PricedBlock& priced(std::int32_t placement, const BlockVisit& at) const;
  // A layer of a forward and one of a backward, issued in turn.
  struct PairedBlock {
    std::vector<Operation> operations;
    PricedBlock priced;
  };
  const PricedBlock& paired(std::int32_t placement, BlockId forward, BlockId backward) const;
  std::vector<const PricedBlock*> blocks_of(const Table& table, const Instruction& what) const;
  std::vector<const PricedBlock*> blocks_of_pair(const Table& table, const RunPass& run) const;
  RunCost price_pair(const Table& table, const RunPass& run) const;
  static double share_of_pair(const Table& table, const RunPass& run, const BlockPrices& prices);
  std::size_t cost_of(const Table& table, const Instruction& what) const;
  const Table& table_of(std::int32_t rank_class) const {
    return tables_[static_cast<std::size_t>(classes_[static_cast<std::size_t>(rank_class)].table)];
  }

  const Program& program_;
  mutable BlockCosts block_costs_;  // remembers the groups that it prices for
  mutable std::map<std::tuple<std::int32_t, BlockId, Pass>, PricedBlock> priced_;  // by placement
  mutable std::map<std::tuple<std::int32_t, BlockId, BlockId>, PairedBlock> paired_;
  using TasksKey = std::tuple<std::int32_t, RunKey, std::vector<AxisGroup>, bool>;  // by table
  mutable std::map<TasksKey, PassTasks> tasks_;
  bool alone_;
  std::vector<Placement> placements_;
  std::vector<Table> tables_;
  std::vector<RankClassEntry> classes_;
};

}  // namespace stepcast
