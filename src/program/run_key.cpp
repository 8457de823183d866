// SPDX-License-Identifier: Apache-2.0
#include "program/run_key.h"

#include <map>

#include "program/instruction.h"
#include "program/program.h"

namespace stepcast {

RunKey key_of(const RunPass& run) {
  RunKey out{run.slot.chunk, run.slot.pass, run.block_begin, run.block_end};
  if (run.beside) out.beside = run.beside->chunk;
  return out;
}

RunKey key_of(const RunBlock& run) {
  return {std::nullopt, Pass::kForward, run.block.value, run.block.value + 1};
}

std::optional<RunKey> run_key(const Instruction& what) {
  if (const auto* pass = what.as<RunPass>()) return key_of(*pass);
  if (const auto* block = what.as<RunBlock>()) return key_of(*block);
  return std::nullopt;
}

std::vector<CountedRun> distinct_runs(const Role& role) {
  std::map<RunKey, std::size_t> known;
  std::vector<CountedRun> out;
  for (const Instruction& what : role.instructions) {
    const std::optional<RunKey> key = run_key(what);
    if (!key) continue;
    const auto [found, fresh] = known.try_emplace(*key, out.size());
    if (fresh) out.push_back({&what, 0});
    ++out[found->second].times;
  }
  return out;
}

}  // namespace stepcast
