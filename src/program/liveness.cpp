// SPDX-License-Identifier: Apache-2.0
#include "program/liveness.h"

#include <algorithm>
#include <limits>

#include "core/assert.h"
#include "operation/operation.h"
#include "program/block_events.h"
#include "program/check_lives.h"
#include "program/program.h"

namespace stepcast {
namespace {

struct Life {
  std::int32_t birth = std::numeric_limits<std::int32_t>::max();
  std::int32_t death = -1;
};

constexpr std::int32_t kOutside = -2;  // no operation of the block

// Positions count on from one pass to the next.
std::vector<Life> lives_of(const Block& block) {
  std::vector<Life> lives(block.buffers.size());
  std::int32_t first = 0;
  const auto scan = [&](const std::vector<Operation>& pass) {
    const std::vector<std::int32_t> ends = uses_end(pass);
    for (std::size_t i = 0; i < pass.size(); ++i) {
      const std::int32_t begin = first + static_cast<std::int32_t>(i), end = first + ends[i];
      for (const BufferId id : pass[i].writes) {
        lives[id.index()].birth = std::min(lives[id.index()].birth, begin);
        lives[id.index()].death = std::max(lives[id.index()].death, end);
      }
      for (const BufferId id : pass[i].reads) {
        lives[id.index()].death = std::max(lives[id.index()].death, end);
      }
    }
    first += static_cast<std::int32_t>(pass.size());
  };
  for (const Pass pass : passes_of(block.form)) scan(block.pass(pass).operations);
  for (const BufferId id : {block.input, block.output_gradient}) {
    if (id.valid()) lives[id.index()].birth = kOutside;
  }
  for (const BufferId id : {block.output, block.input_gradient}) {
    if (id.valid()) lives[id.index()].death = kOutside;
  }
  return lives;
}

// Bytes of buffers that collectives of the pass read, and that die in it.
ByteCount lent_to_collectives(const Block& block, Pass pass,
                              const std::vector<OperationLives>& lives) {
  std::vector<bool> is_read(block.buffers.size());
  for (const Operation& operation : block.pass(pass).operations) {
    if (!std::holds_alternative<Collective>(operation.work)) continue;
    for (const BufferId id : operation.reads) is_read[id.index()] = true;
  }
  ByteCount out = 0;
  for (const OperationLives& operation : lives) {
    for (const BufferId id : operation.deaths) {
      if (is_read[id.index()]) out += block.buffers[id.index()].size();
    }
  }
  return out;
}

MemoryTrace memory_of(const Block& block, const std::vector<OperationLives>& pass) {
  MemoryTrace out;
  const auto part = [&](BufferId id) -> ByteCount& {
    return out.after[static_cast<std::size_t>(block.buffers[id.index()].category)];
  };
  for (const OperationLives& operation : pass) {
    for (const BufferId id : operation.births) part(id) += block.buffers[id.index()].size();
    const ByteCount now = total(out.after);
    if (now > out.peak) {
      out.peak = now;
      out.at_peak = out.after;
    }
    for (const BufferId id : operation.deaths) part(id) -= block.buffers[id.index()].size();
    for (std::size_t i = 0; i < out.lowest.size(); ++i) {
      out.lowest[i] = std::min(out.lowest[i], out.after[i]);
    }
  }
  return out;
}

}  // namespace

void finish_block(Block& block) {
  place_events(block);
  const BlockLives lives = trace_lives(block);
  const std::optional<std::string> fault = fault_of(block, lives);
  STEPCAST_ASSERT(!fault, fault->c_str());
  for (const Pass pass : passes_of(block.form)) {
    MemoryTrace& memory = block.pass(pass).memory;
    memory = memory_of(block, lives.pass(pass));
    memory.lent = lent_to_collectives(block, pass, lives.pass(pass));
  }
}

BlockLives trace_lives(const Block& block) {
  const std::vector<Life> lives = lives_of(block);
  BlockLives out;
  std::vector<OperationLives*> at;  // by position
  for (const Pass pass : passes_of(block.form)) {
    std::vector<OperationLives>& own = out.passes[static_cast<std::size_t>(pass)];
    own.resize(block.pass(pass).operations.size());
    for (OperationLives& operation : own) at.push_back(&operation);
  }
  for (std::size_t b = 0; b < lives.size(); ++b) {
    const Life& life = lives[b];
    const bool used = life.death != -1;  // a buffer that no operation names never lives
    if (used && life.birth >= 0 && life.birth != std::numeric_limits<std::int32_t>::max()) {
      at[static_cast<std::size_t>(life.birth)]->births.emplace_back(b);
    }
    if (life.death >= 0) at[static_cast<std::size_t>(life.death)]->deaths.emplace_back(b);
  }
  return out;
}

}  // namespace stepcast
