// SPDX-License-Identifier: Apache-2.0
// One entry of a role's list: what the rank's host issues, on which stream, and what must have
// ended before it starts. The kinds are a variant: each has its own fields only, and says what it
// is for. Names are for people; nothing decides by them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "cluster/host_link.h"
#include "core/id.h"
#include "layout/axis_group.h"
#include "operation/memory_parts.h"
#include "operation/message.h"
#include "operation/phase.h"
#include "program/block_kind.h"
#include "program/element_range.h"
#include "program/rank_stream.h"
#include "program/rare.h"
#include "program/waits.h"
#include "schedule/pass.h"

namespace stepcast {

// One pass of a micro-batch over blocks [block_begin, block_end) of a chunk of the role; a backward
// runs them last to first.
struct RunPass {
  Slot slot;
  std::int32_t block_begin, block_end;
  // The pass, next to it in the list and of another micro-batch, whose operations are issued in
  // turn with those of this one (program/pass_pair.h). One after the other they give the same.
  std::optional<Slot> beside = {};
};

// A block outside the chunks.
struct RunBlock {
  BlockId block;
  BlockKind kind;  // of the block
};

// A collective outside blocks moves one of these.
enum class Purpose {
  kGradients,            // summed over the ranks that hold the same parameters
  kParameters,           // whole again from their shards
  kReplicatedGradients,  // of parameters that every tensor-parallel rank holds whole
  kTiedTable,            // gradients of the table that both ends of the pipeline hold
  kGradientNorm,
  kBoundary  // an activation that each tensor-parallel rank has received a share of
};

struct CollectiveCall {
  Purpose purpose;
  AxisGroup group;
  Message message;          // of all pieces
  std::int32_t pieces = 1;  // issued as so many equal collectives, one after the other
  Slot slot{};              // kBoundary: the pass that receives it
  // Gradients and parameters: flat elements of the role (Role::stretches), before sharding.
  ElementRange elements{};

  Message piece() const {
    Message one = message;
    one.bytes /= pieces;
    return one;
  }
};

// An activation, or its gradient, between this stage and `peer` of the same pipeline: sender and
// receiver meet by (sender, receiver, tag).
struct StageTransfer {
  std::int32_t peer;
  std::int64_t tag;
  ByteCount bytes;
  DataType type;
  Slot slot;  // the pass that made it, or that receives it
};
struct Send : StageTransfer {};
struct Receive : StageTransfer {};

// The host issues nothing more until what it waits for has ended.
struct HostWait {};

// Something goes to host memory, or comes back.
struct HostCopy {
  CopyDirection direction;
  ByteCount bytes;
};

// Offloaded activations: whatever blocks [block_begin, block_end) have saved in a forward for its
// backward.
struct ActivationCopy : HostCopy {
  Slot slot;  // the forward
  std::int32_t block_begin, block_end;
};

// Offloaded states of these flat elements of the role, before sharding: one of equal parts of them.
struct StatePart {
  ElementRange elements;
  std::int32_t index = 0, count = 1;
};

// Gradients or parameters of offloaded states, which have a place in host memory for the whole run.
struct StateCopy : HostCopy {
  Purpose purpose;
  StatePart part;
  bool on_disk = false;  // they are read from, or written to, the node's disks too
  bool adds = false;     // gradients, to those of earlier micro-batches, beside which they lie
};

// The host updates states that lie in its memory (layout.offload.optimizer).
struct HostUpdate {
  std::int64_t elements;
  double bytes;       // of host memory, read and written
  double disk_bytes;  // read from the node's disks, and as many written; 0: they lie in memory
  StatePart part = {};
};

// Whole gradients and parameters of an instruction's flat elements: buffers, counted in its birth
// and death.
struct FlatWindows {
  std::vector<ElementRange> holds_gradients;   // they live from its start
  std::vector<ElementRange> frees_gradients;   // they were reduced, and die at its end
  std::vector<ElementRange> frees_parameters;  // they were gathered, and die at its end
};

struct Instruction {
  Stream stream;
  const char* name;  // for people
  std::variant<RunPass, RunBlock, CollectiveCall, Send, Receive, HostWait, ActivationCopy,
               StateCopy, HostUpdate>
      work;

  // Earlier instructions of this role, on other streams, that must have ended.
  Waits waits = {};
  // Device memory: births at issue and deaths at the end, beside what the operations of blocks do
  // themselves.
  MemoryParts birth{}, death{};
  Rare<FlatWindows> windows = {};

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(work);
  }
  template <class Kind>
  const Kind* as() const {  // null where it is of another kind
    return std::get_if<Kind>(&work);
  }
  template <class Kind>
  Kind* as() {
    return std::get_if<Kind>(&work);
  }

  bool is_run() const { return is<RunPass>() || is<RunBlock>(); }
  const StageTransfer* transfer() const {  // a send's or a receive's
    if (const auto* send = as<Send>()) return send;
    return as<Receive>();
  }
  const HostCopy* host_copy() const {  // of either kind
    if (const auto* copy = as<ActivationCopy>()) return copy;
    return as<StateCopy>();
  }
  // The pass that it runs, or whose activation or gradient it moves; null where there is none.
  const Slot* slot() const;
  Phase phase() const;      // what the time of a run counts as; of others kForward
  ByteCount bytes() const;  // that it moves
  // Host memory that a copy takes at its issue, or leaves at its end, beside what lies there for
  // the whole run.
  ByteCount host_birth() const;
  ByteCount host_death() const;

  void wait_for(InstructionIndex instruction) {  // negative: for nothing
    if (instruction >= 0) waits.add(instruction);
  }
  void hold_gradients(ElementRange range, ByteCount held);
  void free_gradients(ElementRange range, ByteCount held);
  void free_parameters(ElementRange range, ByteCount held);
};

// When one instruction becomes several, the first takes over what belongs to its start, and the
// last what belongs to its end.
void take_begin(Instruction& first, const Instruction& whole);
void take_end(Instruction& last, const Instruction& whole);

}  // namespace stepcast
