// SPDX-License-Identifier: Apache-2.0
// A program whose activations wait for their backward in host memory: behind every forward each of
// its blocks is copied out, before every backward each is copied back. No layout asks for all of
// them (program/offload_activations.h).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program/offload_activations.h"
#include "program/walk.h"

namespace stepcast::testing {

class Offloading {
 public:
  Offloading(const Program& program, const Role& role) : program_(program), role_(role) {}

  std::vector<Instruction> instructions() {
    std::vector<InstructionIndex> place;  // of each of the role's own in the new list
    for (const Instruction& own : role_.instructions) {
      Instruction what = own;
      what.waits.renumber(place);
      const auto* run = own.as<RunPass>();
      if (run != nullptr && run->slot.pass != Pass::kForward) copy_back(*run, what);
      out_.push_back(std::move(what));
      place.push_back(static_cast<InstructionIndex>(out_.size()) - 1);
      if (run != nullptr && run->slot.pass == Pass::kForward) copy_out(*run, place.back());
    }
    return std::move(out_);
  }

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;  // micro-batch, block

  InstructionIndex add(const BlockVisit& at, std::int32_t micro_batch, CopyDirection direction,
                       InstructionIndex after) {
    const MemoryParts saved = saved_by(program_.block(at.block));
    const bool leaves = direction == CopyDirection::kToHost;
    const Slot forward{Pass::kForward, micro_batch, 0};
    Instruction copy{leaves ? Stream::kCopyOut : Stream::kCopyIn, leaves ? "copy_out" : "copy_in",
                     ActivationCopy{{direction, total(saved)}, forward, *at.index, *at.index + 1}};
    (leaves ? copy.death : copy.birth) = saved;
    copy.wait_for(after);
    out_.push_back(copy);
    return static_cast<InstructionIndex>(out_.size()) - 1;
  }

  void copy_out(const RunPass& run, InstructionIndex forward) {
    for_each_block(role_, run, [&](const BlockVisit& at) {
      copied_[{run.slot.micro_batch, *at.index}] =
          add(at, run.slot.micro_batch, CopyDirection::kToHost, forward);
    });
  }
  void copy_back(const RunPass& run, Instruction& backward) {
    for_each_block(role_, run, [&](const BlockVisit& at) {
      backward.wait_for(add(at, run.slot.micro_batch, CopyDirection::kFromHost,
                            copied_.at({run.slot.micro_batch, *at.index})));
    });
  }

  const Program& program_;
  const Role& role_;
  std::vector<Instruction> out_;
  std::map<Key, InstructionIndex> copied_;
};

// `program` has one chunk on one stage.
inline Program offloaded(Program program) {
  Role& role = program.roles.front();
  role.instructions = Offloading(program, role).instructions();
  return program;
}

}  // namespace stepcast::testing
