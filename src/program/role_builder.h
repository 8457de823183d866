// SPDX-License-Identifier: Apache-2.0
// Writes the instruction list of one stage. Knows streams and waits, not frameworks.
#pragma once

#include <set>
#include <vector>

#include "core/work_limits.h"
#include "program/block_builder.h"
#include "program/program.h"
#include "program/waits.h"

namespace stepcast {

struct Scenario;

// The part of an activation that one rank sends to the next stage.
ByteCount boundary_bytes(const Scenario& scenario, const Shape& shape);

class RoleBuilder {
 public:
  RoleBuilder(const Scenario& scenario, const Program& program, Role& role)
      : scenario_(scenario), program_(program), role_(role), shape_(scenario) {}

  // One pass over blocks [begin, end) of local chunk `chunk`.
  InstructionIndex run(Pass pass, std::int32_t chunk, std::int32_t micro_batch, std::int32_t begin,
                       std::int32_t end);
  InstructionIndex run_whole(Pass pass, std::int32_t chunk, std::int32_t micro_batch);
  InstructionIndex run_block(BlockId block);  // outside the chunks

  InstructionIndex collective(const char* name, Stream stream, const CollectiveCall& call);
  // It moves flat gradients or parameters, among the ranks that hold the same ones.
  InstructionIndex collective(const char* name, Stream stream, Purpose purpose, CollectiveKind kind,
                              ElementRange elements, DataType type, std::int32_t pieces = 1);
  // Behind the reduction of gradients among ranks that share one copy of the states: each adds its
  // part to that of the other copies, beside whatever is reduced next. Nothing, and `reduced`
  // itself, where there is one copy.
  InstructionIndex sum_copies(InstructionIndex reduced);
  // Behind a reduction whose shards the host sums and updates: copies them there.
  InstructionIndex copy_to_host(InstructionIndex reduced);
  InstructionIndex copy_states(const StateCopy& copy, InstructionIndex after);
  InstructionIndex update_on_host(const HostUpdate& update, InstructionIndex after);
  // `slot`: the pass whose activation or gradient it is.
  InstructionIndex send(Stream stream, std::int32_t peer, std::int64_t tag, const Slot& slot);
  InstructionIndex receive(Stream stream, std::int32_t peer, std::int64_t tag, const Slot& slot);
  // Flat copies live while the instruction runs.
  void hold_flat(InstructionIndex instruction, ByteCount bytes);
  // The host waits for `first` and `second` before it issues anything more.
  InstructionIndex host_sync(InstructionIndex first, InstructionIndex second = kNoInstruction);
  // Hands out the text of a micro-batch; in some frameworks this waits for all that was issued
  // before.
  void load_batch(InstructionIndex last_issued);

  Instruction& at(InstructionIndex index) {
    return role_.instructions[static_cast<std::size_t>(index)];
  }
  InstructionIndex last_run() const { return last_run_; }
  std::size_t chunks() const { return role_.chunks.size(); }
  const Block& block(std::int32_t chunk, std::int32_t index) const;
  std::int32_t blocks(std::int32_t chunk) const;
  std::int64_t elements(std::int32_t chunk, std::int32_t begin, std::int32_t end) const;  // trained
  FrozenWeights frozen(std::int32_t chunk, std::int32_t index) const {
    return block(chunk, index).frozen;
  }
  // Flat trained parameters of one block that the group reduces and shards.
  ElementRange range(std::int32_t chunk, std::int32_t index,
                     AxisGroup group = AxisGroup::kData) const;

  const Scenario& scenario() const { return scenario_; }
  const Program& program() const { return program_; }
  const Shape& shape() const { return shape_; }
  Role& role() { return role_; }
  const Role& role() const { return role_; }

 private:
  InstructionIndex add(Instruction instruction);
  bool has_copies(AxisGroup group) const;  // of what it shards
  StageTransfer boundary(std::int32_t peer, std::int64_t tag, const Slot& slot, bool sends) const;
  // Bytes of what crosses, whole on each rank.
  ByteCount whole_boundary(const Slot& slot, bool sends) const;
  std::int64_t states_across(const Slot& slot, bool sends) const;

  const Scenario& scenario_;
  const Program& program_;
  Role& role_;
  Shape shape_;
  StopPoint stop_;
  InstructionIndex last_run_ = kNoInstruction;
  std::set<std::int64_t> on_host_;  // begins of ranges whose gradients have left in this step
};

}  // namespace stepcast
