// SPDX-License-Identifier: Apache-2.0
// Tells whom an instruction really waits for, where collectives of one member, or of nothing, do
// nothing. Whoever waits for such a one waits for all that it would have followed, as with an event
// that is recorded on its stream: its own waits, and what stands before it on the stream. What
// stands behind it on the stream follows these too.
#pragma once

#include <cstddef>
#include <vector>

#include "layout/rank_grid.h"
#include "program/instruction.h"

namespace stepcast {

struct Role;

// A collective of one member, or of no bytes.
inline bool is_idle(const Instruction& what, const RankGrid& grid) {
  const auto* call = what.as<CollectiveCall>();
  return call != nullptr && (call->message.bytes == 0 || grid.group_size(call->group) < 2);
}

class Awaited {
 public:
  Awaited(const Role& role, const RankGrid& grid);

  // Instructions that are not idle. For an idle one: those that have ended where it would have.
  const Waits& of(std::size_t instruction) const {
    return own_.empty() ? (*list_)[instruction].waits : own_[instruction];
  }

 private:
  const std::vector<Instruction>* list_;
  std::vector<Waits> own_;  // empty where nothing is idle: the program's waits hold
};

}  // namespace stepcast
