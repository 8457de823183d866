// SPDX-License-Identifier: Apache-2.0
#include "predict/block_replay.h"

#include <algorithm>
#include <array>

#include "sim/engine.h"

namespace stepcast {
namespace {

// Takes the operations of a pass in the order of issue and says when each runs.
class Streams {
 public:
  explicit Streams(Seconds begin) : last_(begin) { free_.fill(begin); }

  // No earlier than `issued`.
  Seconds start(const Operation& operation, Seconds issued) const {
    Seconds out = std::max(free_[static_cast<std::size_t>(operation.stream)], issued);
    for (const std::int32_t before : operation.after) {
      if (before >= 0) out = std::max(out, ends_[static_cast<std::size_t>(before)]);
    }
    return out;
  }

  // For `time`, and no earlier than `issued`.
  OperationSpan run(const Operation& operation, Seconds issued, Seconds time) {
    const Seconds start = this->start(operation, issued);
    Seconds& free = free_[static_cast<std::size_t>(operation.stream)];
    free = start + time;
    ends_.push_back(free);
    last_ = std::max(last_, free);
    return {start, free};
  }
  Seconds last() const { return last_; }

 private:
  Seconds last_;
  std::array<Seconds, kBlockStreams> free_{};
  std::vector<Seconds> ends_;
};

// The pass on the engine: kernels share the processor with those collectives beside them that hold
// a part of it. The host is ahead. An error is the clock's: operations wait for those before them
// alone, so that none waits for ever.
Result<sim::Replay> replay_on_processor(std::span<const PricedOperation> operations) {
  sim::Workload workload;
  const sim::ResourceId processor = workload.add_resource(1);
  const sim::Use whole{processor, 1};
  std::array<sim::StreamId, kBlockStreams> streams;
  for (sim::StreamId& stream : streams) stream = workload.add_stream();
  for (const PricedOperation& priced : operations) {
    const Operation& operation = *priced.operation;
    const sim::Use part{processor, priced.held};
    sim::MemberSpec member{streams[static_cast<std::size_t>(operation.stream)], {}, {}};
    sim::TaskSpec spec;
    if (operation.stream == BlockStream::kCompute && priced.cost.gpu.value() > 0) {
      spec.work = priced.cost.gpu.value();
      spec.rate_bound = 1;
      spec.uses = {&whole, 1};
    } else {
      spec.latency = sim::duration(priced.cost.gpu);
      if (priced.held > 0 && operation.stream != BlockStream::kCompute) member.holds = {&part, 1};
    }
    spec.members = {&member, 1};
    const sim::TaskId task = workload.add_task(spec);
    for (const std::int32_t before : operation.after) {
      if (before >= 0) workload.depend(sim::TaskId(before), task);
    }
  }
  return sim::replay(workload);
}

// Attributes the computing stream's time: what it runs, and what it waits for.
class Accounts {
 public:
  explicit Accounts(std::span<const PricedOperation> operations) : operations_(operations) {}

  void add(std::size_t i, const OperationSpan& span) {
    spans_.push_back(span);
    const PricedOperation& own = operations_[i];
    if (own.operation->stream != BlockStream::kCompute) {
      sum_.host += own.cost.host;
      sum_.flops += own.cost.flops;
      return;
    }
    wait_until(span.start);
    sum_.count(own.cost);
    busy_until_ = span.end;
  }

  // The pass ends when its last stream does.
  RunCost finish(Seconds end) {
    wait_until(end);
    return sum_;
  }

 private:
  void wait_until(Seconds time) {
    if (!(busy_until_ < time)) return;
    const auto awaited = std::find_if(spans_.begin(), spans_.end(), [&](const OperationSpan& span) {
      return span.end == time && span.start < time;
    });
    const auto i = static_cast<std::size_t>(awaited - spans_.begin());
    RunCost waiting = operations_[i].cost.exposed(time - busy_until_);
    waiting.host = {};  // counted when it was issued
    waiting.flops = {};
    sum_.count(waiting);
  }

  std::span<const PricedOperation> operations_;
  std::vector<OperationSpan> spans_;
  RunCost sum_;
  Seconds busy_until_;
};

}  // namespace

bool on_one_stream(std::span<const PricedOperation> operations) {
  return std::all_of(operations.begin(), operations.end(), [&](const PricedOperation& priced) {
    return priced.operation->stream == operations.front().operation->stream;
  });
}

void slow_beside(std::span<PricedOperation> operations) {
  const auto holds = [](const PricedOperation& priced) {
    return priced.held > 0 && priced.operation->stream != BlockStream::kCompute;
  };
  if (std::ranges::none_of(operations, holds)) return;
  const auto replay = replay_on_processor(operations);
  if (!replay) return;  // the replay of the step names what takes so long
  for (std::size_t i = 0; i < operations.size(); ++i) {
    RunCost& cost = operations[i].cost;
    const auto& [posted, start, end] = replay->tasks[i];
    const bool computes = operations[i].operation->stream == BlockStream::kCompute;
    // The clock rounds an end to its next picosecond.
    if (computes && end - start > sim::duration(cost.gpu) + sim::Duration{1}) {
      cost = cost.exposed(sim::seconds(end - start));
    }
  }
}

RunCost replay_block(std::span<const PricedOperation> operations) {
  if (on_one_stream(operations)) {
    RunCost sum;
    for (const PricedOperation& priced : operations) sum.append(priced.cost);
    return sum;
  }
  Streams free{Seconds(0)}, issued{Seconds(0)};
  Accounts accounts(operations);
  Seconds host;  // it begins with the pass
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& [operation, cost, lag, held] = operations[i];
    host += cost.host;
    accounts.add(i, free.run(*operation, Seconds(0), cost.gpu));
    issued.run(*operation, host, cost.gpu);
  }
  RunCost out = accounts.finish(free.last());
  out.gpu = free.last();
  out.floor = issued.last();
  return out;
}

std::vector<OperationSpan> replay_spans(std::span<const PricedOperation> operations, Seconds begin,
                                        double stretch) {
  std::vector<OperationSpan> out;
  if (on_one_stream(operations)) {
    Seconds at = begin;
    for (const PricedOperation& priced : operations) {
      const Seconds time = priced.cost.gpu * stretch;
      out.push_back({at, at + time});
      at += time;
    }
    return out;
  }
  Streams streams(begin);
  for (const PricedOperation& priced : operations) {
    out.push_back(streams.run(*priced.operation, begin, priced.cost.gpu * stretch));
  }
  return out;
}

}  // namespace stepcast
