// SPDX-License-Identifier: Apache-2.0
#include "predict/memory_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/assert.h"
#include "core/work_limits.h"
#include "program/run_key.h"
#include "program/walk.h"

namespace stepcast {
namespace {

void add(MemoryParts& sum, const MemoryParts& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}
void subtract(MemoryParts& sum, const MemoryParts& less) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= less[i];
}

constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);

// A pass adds this to the memory that stands when it begins: the same for every micro-batch.
struct RunMemory {
  MemoryParts at_peak{}, after{}, lowest{};
  double fraction = 0;                // of its blocks done at the peak
  ByteCount buffers = 0, others = 0;  // the highest of each by itself
  ByteCount lent = 0;                 // to collectives, by all its blocks
};

class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const Role& role) : program_(program), role_(role) {
    now_ = role.persistent;
    host_ = peak_.host = role.on_host;
    note(now_, 0, 0);
  }

  void instruction(std::int32_t index) {
    highest_here_ = {index, 0, {}};
    const Instruction& what = role_.instructions[static_cast<std::size_t>(index)];
    add(now_, what.birth);
    note(now_, index, 0);
    if (what.is<RunPass>()) run(what, index);
    subtract(now_, what.death);
    expect_states(now_, what);
    host_ += what.host_birth();
    peak_.host = std::max(peak_.host, host_);
    host_ -= what.host_death();
    STEPCAST_ASSERT(host_ >= role_.on_host, "what comes back from host memory has left before");
  }

  const MemoryParts& now() const { return now_; }
  const MemoryMoment& highest_here() const { return highest_here_; }  // of the last instruction
  MemoryPeak finish() {
    for (std::size_t i = 0; i < now_.size(); ++i) {
      STEPCAST_ASSERT(now_[i] == role_.persistent[i],
                      fmt::format("stage {}: {} bytes of {} outlive the step", role_.stage,
                                  now_[i] - role_.persistent[i], part_name(i))
                          .c_str());
    }
    STEPCAST_ASSERT(host_ == role_.on_host,
                    "what has left for host memory comes back in the same step");
    return peak_;
  }

 private:
  static const char* part_name(std::size_t part) {
    return name_of(static_cast<MemoryCategory>(part));
  }

  void expect_states(const MemoryParts& parts, const Instruction& what) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      STEPCAST_ASSERT(
          parts[i] >= role_.persistent[i],
          fmt::format("stage {}, {}: {} bytes of {} are freed that nobody holds", role_.stage,
                      what.name, role_.persistent[i] - parts[i], part_name(i))
              .c_str());
    }
  }

  void run(const Instruction& what, std::int32_t index) {
    const auto [known, fresh] = of_run_.try_emplace(key_of(*what.as<RunPass>()));
    RunMemory& run = known->second;
    if (fresh) run = replay(what);
    if (what.as<RunPass>()->slot.pass == Pass::kForward) {
      lender_ = index;
      lent_ = run.lent;
    }
    MemoryParts inside = now_;
    add(inside, run.at_peak);
    note(inside, index, run.fraction);
    const ByteCount buffers = now_[kBuffers];
    note_highest(buffers + run.buffers, total(now_) - buffers + run.others);
    MemoryParts least = now_;
    add(least, run.lowest);
    expect_states(least, what);
    add(now_, run.after);
  }

  RunMemory replay(const Instruction& what) const {
    std::vector<BlockVisit> begun;
    for_each_block(role_, what, [&](const BlockVisit& at) { begun.push_back(at); });
    RunMemory out;
    ByteCount highest = std::numeric_limits<ByteCount>::min();
    for (std::size_t done = 0; done < begun.size(); ++done) {
      const MemoryTrace& trace = memory_of(program_.block(begun[done].block), begun[done].pass);
      MemoryParts inside = out.after;
      add(inside, trace.at_peak);
      const ByteCount sum = total(inside), buffers = inside[kBuffers];
      out.buffers = std::max(out.buffers, buffers);
      out.others = std::max(out.others, sum - buffers);
      if (sum > highest) {
        highest = sum;
        out.at_peak = inside;
        out.fraction = static_cast<double>(done) / static_cast<double>(begun.size());
      }
      for (std::size_t i = 0; i < out.lowest.size(); ++i) {
        out.lowest[i] = std::min(out.lowest[i], out.after[i] + trace.lowest[i]);
      }
      add(out.after, trace.after);
      out.lent += trace.lent;
    }
    return out;
  }

  void note(const MemoryParts& parts, std::int32_t index, double fraction) {
    const ByteCount sum = total(parts), buffers = parts[kBuffers];
    note_highest(buffers, sum - buffers);
    if (sum > total(highest_here_.parts)) highest_here_ = {index, fraction, parts};
    if (sum <= highest_) return;
    highest_ = sum;
    peak_.parts = parts;
    peak_.instruction = index;
    peak_.fraction = fraction;
    peak_.lender = lender_;
    peak_.lent = lent_;
  }

  void note_highest(ByteCount buffers, ByteCount others) {
    peak_.buffers = std::max(peak_.buffers, buffers);
    peak_.others = std::max(peak_.others, others);
  }

  const Program& program_;
  const Role& role_;
  MemoryParts now_{};
  ByteCount highest_ = -1;
  ByteCount host_ = 0;
  std::int32_t lender_ = -1;  // the forward pass that was issued last
  ByteCount lent_ = 0;        // by it
  MemoryMoment highest_here_{};
  MemoryPeak peak_;
  std::map<RunKey, RunMemory> of_run_;
};

}  // namespace

MemoryPeak replay_memory(const Program& program, const Role& role,
                         const std::function<void(const MemoryMoment&)>& visit) {
  MemoryWalk walk(program, role);
  StopPoint stop;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(role.instructions.size()); ++i) {
    stop.pass();
    walk.instruction(i);
    if (!visit) continue;
    visit(walk.highest_here());
    visit({i, 1, walk.now()});
  }
  return walk.finish();
}

}  // namespace stepcast
