// SPDX-License-Identifier: Apache-2.0
#include "predict/memory_replay.h"

namespace stepcast {
namespace {

void add(MemoryParts& sum, const MemoryParts& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}
void subtract(MemoryParts& sum, const MemoryParts& less) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= less[i];
}

class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const Role& role) : program_(program), role_(role) {
    now_ = role.persistent;
    note(now_, 0, 0);
  }

  void instruction(std::int32_t index) {
    highest_here_ = {index, 0, {}};
    const Instruction& what = role_.instructions[static_cast<std::size_t>(index)];
    add(now_, what.birth);
    note(now_, index, 0);
    if (what.kind == InstructionKind::kRun && what.chunk >= 0) run(what, index);
    subtract(now_, what.death);
  }

  const MemoryParts& now() const { return now_; }
  const MemoryMoment& highest_here() const { return highest_here_; }  // of the last instruction
  MemoryPeak finish() {
    peak_.left = now_;
    subtract(peak_.left, role_.persistent);
    return peak_;
  }

 private:
  void run(const Instruction& what, std::int32_t index) {
    const auto& blocks = role_.chunks[static_cast<std::size_t>(what.chunk)].blocks;
    const bool forward = what.pass == Pass::kForward;
    const std::int32_t count = what.block_end - what.block_begin;
    for (std::int32_t b = 0; b < count; ++b) {
      const std::int32_t at = forward ? what.block_begin + b : what.block_end - 1 - b;
      const Block& block = program_.block(blocks[static_cast<std::size_t>(at)]);
      const MemoryTrace& trace = block.pass(what.pass).memory;
      MemoryParts inside = now_;
      add(inside, trace.at_peak);
      note(inside, index, static_cast<double>(b) / count);
      add(now_, trace.after);
    }
  }

  void note(const MemoryParts& parts, std::int32_t index, double fraction) {
    const ByteCount sum = total(parts);
    if (sum > total(highest_here_.parts)) highest_here_ = {index, fraction, parts};
    if (sum <= highest_) return;
    highest_ = sum;
    peak_.parts = parts;
    peak_.instruction = index;
    peak_.fraction = fraction;
  }

  const Program& program_;
  const Role& role_;
  MemoryParts now_{};
  ByteCount highest_ = -1;
  MemoryMoment highest_here_{};
  MemoryPeak peak_;
};

}  // namespace

MemoryPeak replay_memory(const Program& program, const Role& role,
                         const std::function<void(const MemoryMoment&)>& visit) {
  MemoryWalk walk(program, role);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(role.instructions.size()); ++i) {
    walk.instruction(i);
    if (!visit) continue;
    visit(walk.highest_here());
    visit({i, 1, walk.now()});
  }
  return walk.finish();
}

}  // namespace stepcast
