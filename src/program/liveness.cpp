// SPDX-License-Identifier: Apache-2.0
#include "program/liveness.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

struct Life {
  std::int32_t birth = std::numeric_limits<std::int32_t>::max();
  std::int32_t death = -1;
};

// Walks operations [begin, end) of the joint sequence and records what is born and what dies.
class Walk {
 public:
  Walk(const std::vector<Buffer>& buffers, const std::vector<Life>& lives)
      : buffers_(buffers), lives_(lives) {}

  void operation(const Operation& operation, std::int32_t position, std::int32_t local,
                 MemoryTrace& trace) {
    seen_.clear();
    for (const BufferId id : operation.writes) touch(id, position, true, trace);
    for (const BufferId id : operation.reads) touch(id, position, true, trace);
    const ByteCount now = total(trace.after);
    if (now > trace.peak) {
      trace.peak = now;
      trace.at_peak = trace.after;
      trace.peak_operation = local;
    }
    seen_.clear();
    for (const BufferId id : operation.writes) touch(id, position, false, trace);
    for (const BufferId id : operation.reads) touch(id, position, false, trace);
  }

 private:
  void touch(BufferId id, std::int32_t position, bool births, MemoryTrace& trace) {
    if (std::find(seen_.begin(), seen_.end(), id) != seen_.end()) return;
    seen_.push_back(id);
    const Life& life = lives_[id.index()];
    const Buffer& buffer = buffers_[id.index()];
    auto& part = trace.after[static_cast<std::size_t>(buffer.category)];
    if (births && life.birth == position) part += buffer.size();
    if (!births && life.death == position) part -= buffer.size();
  }

  const std::vector<Buffer>& buffers_;
  const std::vector<Life>& lives_;
  std::vector<BufferId> seen_;
};

std::vector<Life> lives_of(const Block& block) {
  std::vector<Life> lives(block.buffers.size());
  std::int32_t position = 0;
  const auto scan = [&](const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) {
      for (const BufferId id : operation.writes) {
        Life& life = lives[id.index()];
        life.birth = std::min(life.birth, position);
        life.death = position;
      }
      for (const BufferId id : operation.reads) lives[id.index()].death = position;
      ++position;
    }
  };
  scan(block.forward);
  scan(block.backward);

  constexpr std::int32_t kOutside = -2;
  for (const BufferId id : {block.input, block.output_gradient}) {
    if (id.valid()) lives[id.index()].birth = kOutside;
  }
  for (const BufferId id : {block.output, block.input_gradient}) {
    if (id.valid()) lives[id.index()].death = kOutside;
  }
  return lives;
}

}  // namespace

ByteCount total(const MemoryParts& parts) {
  ByteCount sum = 0;
  for (const ByteCount part : parts) sum += part;
  return sum;
}

void trace_memory(Block& block) {
  const std::vector<Life> lives = lives_of(block);
  Walk walk(block.buffers, lives);
  std::int32_t position = 0;
  const auto trace = [&](const std::vector<Operation>& operations, MemoryTrace& memory) {
    memory = {};
    for (std::size_t i = 0; i < operations.size(); ++i) {
      walk.operation(operations[i], position++, static_cast<std::int32_t>(i), memory);
    }
  };
  trace(block.forward, block.forward_memory);
  trace(block.backward, block.backward_memory);
}

BlockLives trace_lives(const Block& block) {
  const std::vector<Life> lives = lives_of(block);
  BlockLives out;
  std::int32_t position = 0;
  const auto trace = [&](const std::vector<Operation>& operations,
                         std::vector<OperationLives>& into) {
    for (const Operation& operation : operations) {
      OperationLives& here = into.emplace_back();
      const auto note = [&](BufferId id) {
        const Life& life = lives[id.index()];
        const auto add = [id](std::vector<BufferId>& list) {
          if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
        };
        if (life.birth == position) add(here.births);
        if (life.death == position) add(here.deaths);
      };
      for (const BufferId id : operation.writes) note(id);
      for (const BufferId id : operation.reads) note(id);
      ++position;
    }
  };
  trace(block.forward, out.forward);
  trace(block.backward, out.backward);
  return out;
}

}  // namespace stepcast
