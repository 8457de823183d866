// SPDX-License-Identifier: Apache-2.0
// Large networks on the engine's own interface: a training step of many ranks with collectives in
// closed form and with every ring in single messages, and a ring over the hosts of a fat tree whose
// messages share links.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "bench_main.h"
#include "core/seeded_random.h"
#include "replay/w1_workload.h"
#include "sim/engine.h"

namespace stepcast::testing {
namespace {

using Kind = W1Operation::Kind;

void report(benchmark::State& state, double tasks, double end_s) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["tasks"] = tasks;
  state.counters["step_s"] = end_s;
  state.counters["peak_mb"] = static_cast<double>(used.ru_maxrss) / 1e3;  // of all so far
}

void BM_W1OnTheEngine(benchmark::State& state) {
  const W1 spec{.ranks = static_cast<std::int32_t>(state.range(0))};
  double tasks = 0, end_s = 0;
  for (auto _ : state) {
    const auto out = replay_on_engine(spec);
    if (!out) return state.SkipWithError("W1 did not end");
    tasks = static_cast<double>(out->tasks.size());
    end_s = sim::seconds(out->end).value();
  }
  report(state, tasks, end_s);
}

// W1 with each all-reduce as the 2(n - 1) rounds of its ring: a message follows the one that its
// sender received and the one that it sent a round before.
class UnrolledBuilder {
 public:
  explicit UnrolledBuilder(const W1& spec) : spec_(spec) {}

  Result<sim::Replay> replay() {
    for (std::int32_t r = 0; r < spec_.ranks; ++r) {
      compute_.push_back(work_.add_stream());
      near_.push_back(work_.add_stream());
      far_.push_back(work_.add_stream());
    }
    for (std::int32_t r = 0; r < spec_.ranks; ++r) add_rank(r);
    for (const auto& [message, receiver] : to_depend_) {
      work_.depend(messages_.at(message), receiver);
    }
    return sim::replay(work_);
  }

 private:
  using Channel = std::array<std::int32_t, 3>;  // from, to, tag

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  sim::TaskId add(sim::StreamId stream, double latency_s, double bytes, double rate) {
    const sim::MemberSpec member{stream, {}, {}, {}};
    sim::TaskSpec spec;
    spec.members = {&member, 1};
    spec.latency = sim::duration(Seconds(latency_s));
    spec.work = bytes;
    spec.rate_bound = rate;
    return work_.add_task(spec);
  }

  void add_rank(std::int32_t rank) {
    std::vector<sim::TaskId> last;  // all that the next operation follows
    std::vector<Channel> received;
    std::array<std::int32_t, 2> issued{};
    const auto follow = [&](sim::TaskId task) {
      for (const sim::TaskId before : last) work_.depend(before, task);
      for (const Channel& channel : received) to_depend_.emplace_back(channel, task);
      received.clear();
    };
    for (const W1Operation& one : operations_of(spec_, rank)) {
      if (one.kind == Kind::kReceive) {
        received.push_back({one.peer, rank, one.tag});
      } else if (one.kind == Kind::kSend) {
        const sim::TaskId message = add(work_.add_stream(), W1::kFarLatency,
                                        static_cast<double>(W1::kActivations), W1::kFar);
        for (const sim::TaskId before : last) work_.depend(before, message);
        messages_[{rank, one.peer, one.tag}] = message;
      } else if (one.kind == Kind::kCompute) {
        const sim::TaskId task = add(compute_[at(rank)], one.us * 1e-6, 0, 0);
        follow(task);
        last = {task};
      } else {
        const std::vector<std::int32_t> group = group_of(spec_, rank, one.kind);
        const bool is_near = one.kind == Kind::kTensorReduce;
        const std::int32_t first = ring(group, is_near, issued[is_near ? 0 : 1]++);
        const auto n = static_cast<std::int32_t>(group.size());
        const auto own = static_cast<std::int32_t>(std::ranges::find(group, rank) - group.begin());
        follow(sim::TaskId(first + own));
        const std::int32_t round = first + (2 * (n - 1) - 1) * n;
        last = {sim::TaskId(round + own), sim::TaskId(round + (own + n - 1) % n)};
      }
    }
  }

  // Adds the ring's messages once for all members, round by round. Returns the first.
  std::int32_t ring(const std::vector<std::int32_t>& group, bool is_near, std::int32_t place) {
    const auto [known, fresh] = rings_.try_emplace({group.front(), is_near ? 1 : 0, place},
                                                   static_cast<std::int32_t>(work_.tasks()));
    if (!fresh) return known->second;
    const auto n = static_cast<std::int32_t>(group.size());
    const double bytes = static_cast<double>(is_near ? W1::kActivations : W1::kBucket) / n;
    for (std::int32_t round = 0; round < 2 * (n - 1); ++round) {
      for (std::int32_t i = 0; i < n; ++i) {
        const std::int32_t rank = group[at(i)];
        const sim::TaskId task = is_near ? add(near_[at(rank)], W1::kNearLatency, bytes, W1::kNear)
                                         : add(far_[at(rank)], W1::kFarLatency, bytes, W1::kFar);
        if (round == 0) continue;
        work_.depend(sim::TaskId(known->second + (round - 1) * n + (i + n - 1) % n), task);
      }
    }
    return known->second;
  }

  const W1& spec_;
  sim::Workload work_;
  std::vector<sim::StreamId> compute_, near_, far_;  // by rank
  std::map<Channel, std::int32_t> rings_;            // of first member, kind, place: first task
  std::map<Channel, sim::TaskId> messages_;
  std::vector<std::pair<Channel, sim::TaskId>> to_depend_;
};

void BM_W1Unrolled(benchmark::State& state) {
  const W1 spec{.ranks = static_cast<std::int32_t>(state.range(0))};
  double tasks = 0, end_s = 0;
  for (auto _ : state) {
    const auto out = UnrolledBuilder(spec).replay();
    if (!out) return state.SkipWithError("W1 did not end");
    tasks = static_cast<double>(out->tasks.size());
    end_s = sim::seconds(out->end).value();
  }
  report(state, tasks, end_s);
}

// A ring all-reduce of 1 GiB over hosts in a random order, on leaves of 16 hosts below 16 spines.
// A message takes the spine of its destination, as D-mod-k routing has it, and shares it with
// others.
sim::Workload ring_over_fat_tree(std::int32_t hosts) {
  constexpr std::int32_t kLeaf = 16;
  constexpr double kRate = 50e9, kBytes = 1 << 30;
  sim::Workload work;
  const std::int32_t leaves = (hosts + kLeaf - 1) / kLeaf;
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  std::vector<sim::ResourceId> from_host, to_host, up, down;  // the last two by leaf and spine
  for (std::int32_t h = 0; h < hosts; ++h) {
    from_host.push_back(work.add_resource(kRate));
    to_host.push_back(work.add_resource(kRate));
  }
  for (std::int32_t l = 0; l < leaves * kLeaf; ++l) {
    up.push_back(work.add_resource(kRate));
    down.push_back(work.add_resource(kRate));
  }
  std::vector<std::int32_t> order(at(hosts));
  std::iota(order.begin(), order.end(), 0);
  SeededRandom random(1);
  for (std::int32_t i = hosts - 1; i > 0; --i) {
    std::swap(order[at(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
  }
  std::vector<sim::StreamId> streams;
  for (std::int32_t h = 0; h < hosts; ++h) streams.push_back(work.add_stream());
  for (std::int32_t round = 0; round < 2 * (hosts - 1); ++round) {
    for (std::int32_t i = 0; i < hosts; ++i) {
      const std::int32_t from = order[at(i)], to = order[at((i + 1) % hosts)];
      std::vector<sim::Use> uses{{from_host[at(from)], 1}, {to_host[at(to)], 1}};
      if (from / kLeaf != to / kLeaf) {
        const std::int32_t spine = to % kLeaf;
        uses.push_back({up[at(from / kLeaf * kLeaf + spine)], 1});
        uses.push_back({down[at(to / kLeaf * kLeaf + spine)], 1});
      }
      const sim::MemberSpec member{streams[at(i)], {}, {}, {}};
      sim::TaskSpec spec;
      spec.members = {&member, 1};
      spec.latency = sim::duration(Seconds(2e-6));
      spec.work = kBytes / hosts;
      spec.rate_bound = kRate;
      spec.uses = uses;
      const sim::TaskId task = work.add_task(spec);
      if (round > 0) work.depend(sim::TaskId((round - 1) * hosts + (i + hosts - 1) % hosts), task);
    }
  }
  return work;
}

void BM_RingOverFatTree(benchmark::State& state) {
  double tasks = 0, end_s = 0;
  for (auto _ : state) {
    const auto out = sim::replay(ring_over_fat_tree(static_cast<std::int32_t>(state.range(0))));
    if (!out) return state.SkipWithError("the ring did not end");
    tasks = static_cast<double>(out->tasks.size());
    end_s = sim::seconds(out->end).value();
  }
  report(state, tasks, end_s);
}

// By ranks, or hosts.
BENCHMARK(BM_RingOverFatTree)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_W1OnTheEngine)->Arg(128)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_W1Unrolled)->Arg(128)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast::testing

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
