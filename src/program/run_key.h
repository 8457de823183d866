// SPDX-License-Identifier: Apache-2.0
// Runs of a role that are alike.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/pass.h"

namespace stepcast {

struct Instruction;
struct Role;
struct RunBlock;
struct RunPass;

// Runs of one role that run the same operations: all but the micro-batch. Outside the chunks the
// block itself tells them apart.
struct RunKey {
  std::optional<std::int32_t> chunk;
  Pass pass;
  std::int32_t begin, end;
  std::optional<std::int32_t> beside = {};  // the chunk of the pass that it alternates with
  auto operator<=>(const RunKey&) const = default;
};
RunKey key_of(const RunPass& run);
RunKey key_of(const RunBlock& run);
std::optional<RunKey> run_key(const Instruction& what);  // none: no run

struct CountedRun {
  const Instruction* first;
  std::int64_t times;
};
// The runs of a step that differ, in the order in which they first come.
std::vector<CountedRun> distinct_runs(const Role& role);

}  // namespace stepcast
