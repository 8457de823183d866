// SPDX-License-Identifier: Apache-2.0
// A step does this beside its passes, stage by stage: reductions, norm, update, gathering, states.
// It is read off the program of a step of few micro-batches, lowered once for each set of keys that
// this depends on.
#pragma once

#include <utility>
#include <vector>

#include "plan/block_table.h"
#include "plan/group_prices.h"
#include "plan/layout_code.h"

namespace stepcast {

struct Pricing;
struct Program;
struct Role;
struct Scenario;

// Seconds on one rank of a stage, transfers alone on their links.
struct StageEnds {
  PassCost begin;           // the host's data loading, zeroing of gradients
  double begin_gather = 0;  // the first gathering of parameters that a forward waits for
  double reduce = 0;        // what follows the last backward, up to the barrier
  PassCost update;          // what follows the barrier, gathering on the compute stream included
  double norm_host = 0;     // the host's time between last backward and barrier
  // Its side streams carry this in a step of m micro-batches: first + more * (m / unit - 1).
  double gather_first = 0, gather_more = 0;
  double scatter_first = 0, scatter_more = 0;  // of gradients
  double extra_first = 0, extra_more = 0;      // kernels between passes (casts of gradients)
  ByteCount persistent = 0;
};

struct StepEnds {
  std::vector<StageEnds> stages;
  double barrier = 0;  // the collective in which all stages meet
  bool has_barrier = false;
  bool host_meets = false;  // the host of each rank waits there, and launches the update after it
  std::int64_t unit = 1;    // micro-batches that a schedule takes at once
  ByteCount framework = 0;  // on each device: context, libraries, communicators
};

// The places of a layout's groups, by stage: of the rank that is first in every other dimension.
class Places {
 public:
  // `groups` outlives this.
  Places(RankGrid grid, GroupPrices& groups) : grid_(std::move(grid)), groups_(groups) {}

  std::vector<DeviceId> first;  // by stage
  PlaceId of(AxisGroup group, std::size_t stage) const;
  // Places of all groups of a list, which outlives this.
  const std::vector<PlaceId>& of(const std::vector<AxisGroup>& groups, std::size_t stage) const;
  const RankGrid& grid() const { return grid_; }

 private:
  struct OfGroup {
    AxisGroup group;
    std::vector<PlaceId> by_stage;  // invalid: not asked for yet
  };
  struct OfList {
    const std::vector<AxisGroup>* groups;
    std::vector<std::vector<PlaceId>> by_stage;  // empty: not asked for yet
  };
  RankGrid grid_;
  GroupPrices& groups_;
  mutable std::vector<OfGroup> known_;  // a layout uses few of its groups
  mutable std::vector<OfList> lists_;   // and few forms of blocks
};

class StepTable {
 public:
  // `scenario` as in BlockTable; `scratch` is a copy of it to lower from.
  StepTable(const Scenario& scenario, Scenario& scratch, GroupPrices& groups)
      : scenario_(scenario), scratch_(scratch), groups_(groups) {}

  const Places& places(const LayoutCode& code);
  const StepEnds& ends(const LayoutCode& code, const Places& places, const Pricing& pricing);
  // StageEnds::persistent of each stage.
  const std::vector<ByteCount>& persistent(const LayoutCode& code);

 private:
  struct Call {
    AxisGroup group;
    Message message;
    double times;  // pieces
  };
  struct Stage {
    PassCost zero, before_barrier, update;  // kernels
    std::vector<Call> before, after, first_gather, last_reduce;
    // By number of units, one or two.
    std::vector<Call> gathers[2], reductions[2];
    PassCost between[2];
    ByteCount persistent = 0;
  };
  struct Skeleton {
    std::vector<Stage> stages;
    Call barrier{};
    bool has_barrier = false, host_meets = false;
    std::int64_t unit = 1;
  };

  void put_in_scratch();
  Skeleton make_skeleton(const Pricing& pricing);
  void read_role(const Program& program, const Role& role, const BlockCosts& costs, int units,
                 Skeleton& out) const;
  double time(const std::vector<Call>& calls, const Places& places, std::size_t stage);
  StepEnds price(const Skeleton& skeleton, const Places& places, const HostFit& host);

  const Scenario& scenario_;
  Scenario& scratch_;
  GroupPrices& groups_;
  Remembered<Places> places_;
  Remembered<Skeleton> skeletons_;
  Remembered<StepEnds> ends_;
  Remembered<std::vector<ByteCount>> persistent_;
};

}  // namespace stepcast
