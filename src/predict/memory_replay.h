// SPDX-License-Identifier: Apache-2.0
// Memory of a role over one step: persistent states, births and deaths of instructions, and the
// traces of the blocks they run, in host issue order, as a caching allocator sees them. Device and
// host memory are two places, each with a peak of its own. At no moment is any part below the
// states', and behind the step nothing is left but these: an assertion says where that is not so.
#pragma once

#include <functional>

#include "core/quantity.h"
#include "operation/memory_parts.h"

namespace stepcast {

struct Program;
struct Role;

struct MemoryPeak {
  MemoryParts parts{};           // at the peak; adds up to it
  std::int32_t instruction = 0;  // during which it stands
  double fraction = 0;           // of the instruction's blocks done by then
  ByteCount buffers = 0;         // the highest of the category kBuffers alone
  ByteCount others = 0;          // and of all else
  ByteCount host = 0;            // the most that lies in host memory at once
  // The forward pass that the host issued last by then, and what it lent to collectives
  // (MemoryTrace::lent); none: -1.
  std::int32_t lender = -1;
  ByteCount lent = 0;
};

// The parts of memory while `instruction` runs, with `fraction` of its blocks done.
struct MemoryMoment {
  std::int32_t instruction;
  double fraction;
  MemoryParts parts;
};

// `visit` (optional) sees each instruction's own highest moment and its end.
MemoryPeak replay_memory(const Program& program, const Role& role,
                         const std::function<void(const MemoryMoment&)>& visit = {});

}  // namespace stepcast
