// SPDX-License-Identifier: Apache-2.0
#include "predict/block_replay.h"

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

struct Span {
  Seconds start, end;
};

// Takes the operations of a pass in the order of issue and says when each runs.
class Streams {
 public:
  // `host_bound`: no operation starts before the host, which begins with the pass, has issued it.
  explicit Streams(bool host_bound) : host_bound_(host_bound) {}

  Span run(const PricedOperation& priced) {
    const Operation& operation = *priced.operation;
    Seconds& free = free_[static_cast<std::size_t>(operation.stream)];
    host_ += priced.cost.host;
    Seconds start = host_bound_ ? std::max(free, host_) : free;
    for (const std::int32_t before : operation.after) {
      if (before >= 0) start = std::max(start, ends_[static_cast<std::size_t>(before)]);
    }
    free = start + priced.cost.gpu;
    ends_.push_back(free);
    last_ = std::max(last_, free);
    return {start, free};
  }
  Seconds last() const { return last_; }

 private:
  bool host_bound_;
  Seconds host_, last_;
  std::array<Seconds, kBlockStreams> free_{};
  std::vector<Seconds> ends_;
};

// Attributes the computing stream's time: what it runs, and what it waits for.
class Accounts {
 public:
  explicit Accounts(std::span<const PricedOperation> operations) : operations_(operations) {}

  void add(std::size_t i, const Span& span) {
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
    const auto awaited = std::find_if(spans_.begin(), spans_.end(), [&](const Span& span) {
      return span.end == time && span.start < time;
    });
    const auto i = static_cast<std::size_t>(awaited - spans_.begin());
    RunCost waiting = operations_[i].cost.exposed(time - busy_until_);
    waiting.host = {};  // counted when it was issued
    waiting.flops = {};
    sum_.count(waiting);
  }

  std::span<const PricedOperation> operations_;
  std::vector<Span> spans_;
  RunCost sum_;
  Seconds busy_until_;
};

bool on_one_stream(std::span<const PricedOperation> operations) {
  return std::all_of(operations.begin(), operations.end(), [](const PricedOperation& priced) {
    return priced.operation->stream == BlockStream::kCompute;
  });
}

}  // namespace

RunCost replay_block(std::span<const PricedOperation> operations) {
  if (on_one_stream(operations)) {
    RunCost sum;
    for (const PricedOperation& priced : operations) sum.append(priced.cost);
    return sum;
  }
  Streams free(false), issued(true);
  Accounts accounts(operations);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    accounts.add(i, free.run(operations[i]));
    issued.run(operations[i]);
  }
  RunCost out = accounts.finish(free.last());
  out.gpu = free.last();
  out.floor = issued.last();
  return out;
}

}  // namespace stepcast
