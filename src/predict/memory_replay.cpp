// SPDX-License-Identifier: Apache-2.0
#include "predict/memory_replay.h"

#include <algorithm>

#include "program/walk.h"

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
    if (what.is<RunPass>()) run(what, index);
    subtract(now_, what.death);
    host_ += what.host_birth;
    peak_.host = std::max(peak_.host, host_);
    host_ -= what.host_death;
  }

  const MemoryParts& now() const { return now_; }
  const MemoryMoment& highest_here() const { return highest_here_; }  // of the last instruction
  MemoryPeak finish() {
    peak_.left = now_;
    subtract(peak_.left, role_.persistent);
    peak_.host_left = host_;
    return peak_;
  }

 private:
  // Where a pass is run in parts, a block counts where it begins.
  void run(const Instruction& what, std::int32_t index) {
    begun_.clear();
    for_each_part(program_, role_, what, [&](const BlockPart& part) {
      if (part.starts) begun_.push_back(part.at);
    });
    std::int32_t done = 0;
    for (const BlockVisit& at : begun_) {
      const MemoryTrace& trace = memory_of(program_.block(at.block), at.pass);
      MemoryParts inside = now_;
      add(inside, trace.at_peak);
      note(inside, index, static_cast<double>(done++) / static_cast<double>(begun_.size()));
      add(now_, trace.after);
    }
  }

  void note(const MemoryParts& parts, std::int32_t index, double fraction) {
    const ByteCount sum = total(parts);
    const ByteCount buffers = parts[static_cast<std::size_t>(MemoryCategory::kBuffers)];
    peak_.buffers = std::max(peak_.buffers, buffers);
    peak_.others = std::max(peak_.others, sum - buffers);
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
  ByteCount host_ = 0;
  MemoryMoment highest_here_{};
  MemoryPeak peak_;
  std::vector<BlockVisit> begun_;  // in the pass at hand
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
