// SPDX-License-Identifier: Apache-2.0
#include "predict/block_replay.h"

#include <algorithm>
#include <array>

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

// Who takes how much of the processor, and when.
class Holders {
 public:
  void add(const OperationSpan& span, double part) {
    if (part > 0 && span.start < span.end) holders_.push_back({span, part});
  }

  // When work that takes `time` on the whole processor ends, begun at `start`.
  Seconds end_of(Seconds start, Seconds time) const {
    Seconds at = start, left = time;
    for (const Holder& holder : holders_) {  // on one stream, so one after the other
      if (holder.span.end <= at) continue;
      const Seconds before = std::max(Seconds(0), holder.span.start - at);
      if (left <= before) break;
      left -= before;
      at += before;
      const double rate = 1 - holder.part;
      const Seconds beside = holder.span.end - at;
      if (left <= beside * rate) return at + left / rate;
      left -= beside * rate;
      at = holder.span.end;
    }
    return at + left;
  }

 private:
  struct Holder {
    OperationSpan span;
    double part;
  };
  std::vector<Holder> holders_;
};

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
  if (on_one_stream(operations)) return;
  Streams streams{Seconds(0)};
  Holders holders;
  for (PricedOperation& priced : operations) {
    const Operation& operation = *priced.operation;
    if (operation.stream != BlockStream::kCompute) {
      holders.add(streams.run(operation, Seconds(0), priced.cost.gpu), priced.held);
      continue;
    }
    const Seconds start = streams.start(operation, Seconds(0));
    const Seconds time = holders.end_of(start, priced.cost.gpu) - start;
    if (priced.cost.gpu < time) priced.cost = priced.cost.exposed(time);
    streams.run(operation, Seconds(0), time);
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
