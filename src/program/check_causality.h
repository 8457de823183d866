// SPDX-License-Identifier: Apache-2.0
// Cause before effect: nothing is used before it exists, nothing overwritten while it is used.
// What must follow what comes from operands and buffers (program/data_flow.h); whether it does,
// from streams, waits and the host's order, or from recorded times.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "program/data_flow.h"
#include "program/rank_stream.h"
#include "schedule/pass.h"

namespace stepcast {

struct Block;

// Returns the first fault of the waits of a role, into its next step too.
std::optional<std::string> broken_cause(const Program& program, const Role& role,
                                        const RankGrid& grid);

// And with the streams and events of a pass over a block.
std::optional<std::string> broken_cause(const Block& block, Pass pass);

// All of a program, blocks included.
std::optional<std::string> broken_cause(const Program& program, const RankGrid& grid);

// When an instruction ran, in any unit.
struct RecordedSpan {
  double start = 0, end = 0;
};
// Returns the first fault of a step that ran, by its times alone.
// Clocks may tell them apart by `resolution` at most.
std::optional<std::string> broken_cause(const Role& role, const DataFlow& flow,
                                        std::span<const RecordedSpan> spans, double resolution = 0);

// By instruction, on each stream: the latest that has ended when it starts (-1: none is known to
// have), by the order of streams and by waits. `by_host`: also because the host, which issues it,
// has waited.
std::vector<std::array<std::int32_t, kStreams>> ended_before(const Role& role, bool by_host);

}  // namespace stepcast
