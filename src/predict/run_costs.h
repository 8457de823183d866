// SPDX-License-Identifier: Apache-2.0
// Prices of every run instruction of every rank class.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "predict/block_cost.h"
#include "predict/block_replay.h"
#include "predict/symmetry.h"
#include "program/awaited.h"
#include "program/block_kind.h"
#include "program/run_key.h"
#include "schedule/pass.h"

namespace stepcast {

struct BlockVisit;
struct Role;
struct RunPass;
struct Scenario;

// How ranks send inside passes: on links that they share with their siblings, each as if the links
// were its own, or not at all, because they run without the others.
enum class SendsInPasses { kBesideSiblings, kApart, kNothing };

class RunCosts {
 public:
  RunCosts(const Scenario& scenario, const Program& program, const RankGrid& grid,
           const Symmetry& symmetry, const KernelCosts& kernels, const CollectiveCosts& collectives,
           SendsInPasses sends = SendsInPasses::kBesideSiblings);

  // `instruction` is one of role(rank_class).instructions.
  const RunCost& run(std::int32_t rank_class, const Instruction& instruction) const;
  // A pass over a block, or over two of passes that alternate, priced once.
  struct PricedBlock {
    std::vector<Operation> issued_in_turn;  // by two passes that alternate
    std::vector<PricedOperation> operations;
    RunCost cost;
  };
  // Lists the blocks that it runs, in order. The first of two passes that alternate runs both
  // (program/pass_pair.h), and the second nothing.
  std::vector<const PricedBlock*> blocks(std::int32_t rank_class,
                                         const Instruction& instruction) const {
    return blocks_of(table_of(rank_class), instruction);
  }
  // The instruction as tasks of the engine. Collectives of `groups` load links.
  const PassTasks& tasks(std::int32_t rank_class, const Instruction& instruction,
                         const std::vector<AxisGroup>& groups, bool each_operation) const;
  // The part of the pair's time in which a pass that alternates with another one runs alone where
  // its time is drawn; 1 of other instructions.
  double share_of_pair(std::int32_t rank_class, const Instruction& instruction) const;
  const Role& role(std::int32_t rank_class) const {
    return *classes_[static_cast<std::size_t>(rank_class)].role;
  }
  // Instructions that number `i` of the class waits for, none of them idle.
  const Waits& waits(std::int32_t rank_class, std::size_t i) const;
  // Rank classes of one table are of one stage, and their instructions cost the same.
  std::int32_t table(std::int32_t rank_class) const {
    return classes_[static_cast<std::size_t>(rank_class)].table;
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

  // A rank's groups, and what they share with their siblings.
  struct Placement {
    std::vector<GroupPlacement> groups;
    std::shared_ptr<const SiblingLinks> links;
    std::vector<GpuKind> kinds;  // its own, and others of those that it meets inside passes
  };
  void add_class(const Role& role, std::int32_t placement);
  std::vector<PassDevice> pass_devices(const Placement& placement) const;
  // `forward`: beside this backward.
  const PricedBlock& priced(std::int32_t placement, const BlockVisit& at,
                            BlockId forward = {}) const;
  std::vector<const PricedBlock*> blocks_of(const Table& table, const Instruction& what) const;
  std::vector<const PricedBlock*> blocks_of_pair(const Table& table, const RunPass& run) const;
  double share_of_pair(const Table& table, const RunPass& run) const;
  std::size_t cost_of(const Table& table, const Instruction& what) const;
  const Table& table_of(std::int32_t rank_class) const {
    return tables_[static_cast<std::size_t>(table(rank_class))];
  }

  const Program& program_;
  const KernelCosts& kernels_;
  std::vector<Awaited> awaited_;    // by stage
  mutable BlockCosts block_costs_;  // remembers the groups that it prices for
  using BlockKey = std::tuple<std::int32_t, BlockId, Pass, BlockId>;  // by placement
  mutable std::map<BlockKey, PricedBlock> priced_;
  using TasksKey = std::tuple<std::int32_t, RunKey, std::vector<AxisGroup>, bool>;  // by table
  mutable std::map<TasksKey, PassTasks> tasks_;
  bool alone_;
  bool delays_wgrad_;  // in pairs (Overlap::expert_wgrad)
  std::vector<Placement> placements_;
  std::vector<Table> tables_;
  std::vector<RankClassEntry> classes_;
};

}  // namespace stepcast
