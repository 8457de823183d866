// SPDX-License-Identifier: Apache-2.0
#include "program/check_causality.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/program.h"
#include "program/stream_clock.h"

namespace stepcast {
namespace {

using Clock = StreamClock<kStreams>;

// Walks a list, some steps one behind the other.
class Clocks {
 public:
  Clocks(const Role& role, bool by_host) : list_(role.instructions), by_host_(by_host) {
    for (Clock& clock : last_) clock.fill(-1);
    host_.fill(-1);
  }

  std::vector<Clock> walk(std::int32_t steps) {
    const auto count = static_cast<std::int32_t>(list_.size());
    std::vector<Clock> starts;
    starts.reserve(static_cast<std::size_t>(count * steps));
    ends_.reserve(starts.capacity());
    for (std::int32_t step = 0; step < steps; ++step) {
      for (std::int32_t i = 0; i < count; ++i) starts.push_back(start(i, step * count));
      computed_before_ = last_[kComputing];
    }
    return starts;
  }

 private:
  static constexpr auto kComputing = static_cast<std::size_t>(Stream::kCompute);

  Clock start(std::int32_t i, std::int32_t first) {
    const Instruction& what = list_[static_cast<std::size_t>(i)];
    const auto own = static_cast<std::size_t>(what.stream);
    const bool is_wait = what.is<HostWait>();
    Clock clock = host_;
    if (!is_wait) follow(clock, last_[own]);
    for (const InstructionIndex wait : what.waits) {
      follow(clock, ends_[static_cast<std::size_t>(first + wait)]);
    }
    // A gather that waits for nothing follows the update of the step before
    // (predict/workload_builder.cpp).
    const bool opens = what.is<CollectiveCall>() && what.stream == Stream::kGather;
    if (opens && what.waits.empty() && first > 0) follow(clock, computed_before_);
    Clock end = clock;
    if (!is_wait) end[own] = first + i;
    if (is_wait && by_host_) follow(host_, clock);
    if (!is_wait) last_[own] = end;
    ends_.push_back(end);
    return clock;
  }

  const std::vector<Instruction>& list_;
  bool by_host_;
  std::array<Clock, kStreams> last_;  // by stream: the end of its last instruction
  Clock host_;                        // what the host has waited for
  Clock computed_before_{};           // the end of the last step on the computing stream
  std::vector<Clock> ends_;
};

}  // namespace

std::vector<Clock> ended_before(const Role& role, bool by_host) {
  return Clocks(role, by_host).walk(1);
}

std::optional<std::string> broken_cause(const Program& program, const Role& role,
                                        const RankGrid& grid) {
  const DataFlow flow = data_flow(program, role, grid);
  if (flow.fault) return flow.fault;
  const auto count = static_cast<std::int32_t>(role.instructions.size());
  const std::vector<Clock> starts = Clocks(role, true).walk(2);
  std::optional<std::string> into_next;
  for (std::int32_t i = 0; i < count; ++i) {
    const Clock& ended = starts[static_cast<std::size_t>(count + i)];
    for (const std::int32_t before : flow.after[static_cast<std::size_t>(i)]) {
      if (before < 0 && into_next) continue;
      const std::int32_t at = (before + count) % count;
      const Stream stream = role.instructions[static_cast<std::size_t>(at)].stream;
      if (ended[static_cast<std::size_t>(stream)] >= count + before) continue;
      const std::string lost =
          fmt::format("{} does not wait for {}{}", describe(role, i),
                      before < 0 ? "the step before, " : "", describe(role, at));
      if (before >= 0) return lost;
      into_next = lost;
    }
  }
  return into_next;
}

namespace {

using BlockPlaces = StreamClock<kBlockStreams>;

// Who has used a buffer of a block last, on each stream.
struct LastUsers {
  BlockPlaces writers{-1, -1, -1}, readers{-1, -1, -1};
};

}  // namespace

std::optional<std::string> broken_cause(const Block& block, Pass pass) {
  const std::vector<Operation>& operations = block.pass(pass).operations;
  std::vector<LastUsers> users(block.buffers.size());
  std::vector<BlockPlaces> ended;  // by operation, its own end included
  BlockPlaces latest{-1, -1, -1};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& what = operations[i];
    const auto own = static_cast<std::size_t>(what.stream);
    BlockPlaces known{-1, -1, -1};
    const auto take = [&](std::int32_t before) {
      if (before >= 0) follow(known, ended[static_cast<std::size_t>(before)]);
    };
    take(latest[own]);
    for (const std::int32_t before : what.after) take(before);
    const auto lacks = [&](const BlockPlaces& before) -> std::int32_t {
      for (std::size_t s = 0; s < before.size(); ++s) {
        if (before[s] > known[s]) return before[s];
      }
      return -1;
    };
    std::int32_t missed = -1;
    const char* buffer = "";
    const auto expect = [&](BufferId id, const BlockPlaces& before) {
      const std::int32_t found = lacks(before);
      if (found < 0) return;
      missed = found;
      buffer = block.buffers[id.index()].name;
    };
    for (const BufferId id : what.reads) expect(id, users[id.index()].writers);
    for (const BufferId id : what.writes) {
      expect(id, users[id.index()].writers);
      expect(id, users[id.index()].readers);
    }
    if (missed >= 0) {
      return fmt::format("{}, {}: {} does not wait for {}, which has {} too", name_of(block.kind),
                         name_of(pass), what.name,
                         operations[static_cast<std::size_t>(missed)].name, buffer);
    }
    const auto at = static_cast<std::int32_t>(i);
    for (const BufferId id : what.reads) users[id.index()].readers[own] = at;
    for (const BufferId id : what.writes) {
      users[id.index()] = {};
      users[id.index()].writers[own] = at;
    }
    known[own] = at;
    latest[own] = at;
    ended.push_back(known);
  }
  return std::nullopt;
}

std::optional<std::string> broken_cause(const Program& program, const RankGrid& grid) {
  for (const Block& block : program.blocks) {
    for (int pass = 0; pass < kPasses; ++pass) {
      if (auto broken = broken_cause(block, static_cast<Pass>(pass))) return broken;
    }
  }
  for (const Role& role : program.roles) {
    if (auto broken = broken_cause(program, role, grid)) return broken;
  }
  return std::nullopt;
}

std::optional<std::string> broken_cause(const Role& role, const DataFlow& flow,
                                        std::span<const RecordedSpan> spans, double resolution) {
  std::array<double, kStreams> ended{};  // of each stream's last instruction
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const Instruction& what = role.instructions[i];
    if (spans[i].start < -resolution || spans[i].end < spans[i].start) {
      return fmt::format("{} runs from {} to {}", describe(role, index), spans[i].start,
                         spans[i].end);
    }
    double& last = ended[static_cast<std::size_t>(what.stream)];
    if (spans[i].start < last - resolution) {
      return fmt::format("{} starts before its stream is free", describe(role, index));
    }
    last = spans[i].end;
    const auto follows = [&](std::int32_t before) {
      return before < 0 ||
             spans[static_cast<std::size_t>(before)].end <= spans[i].start + resolution;
    };
    for (const std::int32_t before : flow.after[i]) {
      if (follows(before)) continue;
      return fmt::format("{} starts before the end of {}, whose data it uses",
                         describe(role, index), describe(role, before));
    }
    for (const std::int32_t wait : what.waits) {
      if (follows(wait)) continue;
      return fmt::format("{} starts before the end of {}, for which it waits",
                         describe(role, index), describe(role, wait));
    }
  }
  return std::nullopt;
}

}  // namespace stepcast
