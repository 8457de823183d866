// SPDX-License-Identifier: Apache-2.0
// The engine's speed in events (starts and completions of tasks) per second of one core.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "bench_main.h"
#include "sim/engine.h"
#include "sim/max_min.h"
#include "sim/workload.h"

namespace stepcast::sim {
namespace {

struct PipelineSpec {
  int stages;
  int micro_batches;
  bool share_links;  // the sends of four neighbouring stages share one link
};

// One-forward-one-backward: forwards, sends and receives as two-member tasks on streams of their
// own.
class Pipeline {
 public:
  explicit Pipeline(const PipelineSpec& spec) : spec_(spec) {
    for (int s = 0; s < spec.stages; ++s) {
      compute_.push_back(workload_.add_stream());
      for (auto& streams : transfer_) streams.push_back(workload_.add_stream());
      if (spec.share_links && s % 4 == 0) links_.push_back(workload_.add_resource(50e9));
    }
    forward_.resize(static_cast<std::size_t>(spec.stages), std::vector<TaskId>());
    backward_ = forward_;
    for (int s = 0; s < spec.stages; ++s) add_stage(s);
    for (int m = 0; m < spec.micro_batches; ++m) {
      for (int s = 0; s + 1 < spec.stages; ++s) send(forward_, s, s + 1, m, 0);
      for (int s = spec.stages; s-- > 1;) send(backward_, s, s - 1, m, 2);
    }
  }

  Workload take() { return std::move(workload_); }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  TaskId add_compute(int stage, double seconds) {
    const std::array members{MemberSpec{.stream = compute_[at(stage)], .issuer = {}, .floor = {}}};
    return workload_.add_task(
        {.members = members, .latency = {}, .work = 1, .rate_bound = 1 / seconds});
  }

  void add_stage(int stage) {
    const int warm_up = std::min(spec_.stages - stage - 1, spec_.micro_batches);
    for (int m = 0; m < spec_.micro_batches + warm_up; ++m) {
      if (m < spec_.micro_batches) forward_[at(stage)].push_back(add_compute(stage, 1e-3));
      if (m >= warm_up) backward_[at(stage)].push_back(add_compute(stage, 2e-3));
    }
  }

  void send(const std::vector<std::vector<TaskId>>& tasks, int from, int to, int micro_batch,
            std::size_t direction) {
    const TaskId source = tasks[at(from)][at(micro_batch)];
    const TaskId target = tasks[at(to)][at(micro_batch)];
    const std::array members{
        MemberSpec{.stream = transfer_[direction][at(from)], .issuer = {}, .floor = {}},
        MemberSpec{.stream = transfer_[direction + 1][at(to)], .issuer = {}, .floor = {}}};
    std::vector<Use> uses;
    if (spec_.share_links) uses.push_back({links_[at(from / 4)], 1.0});
    const TaskId transfer = workload_.add_task({.members = members,
                                                .latency = {5'000'000},
                                                .work = 32e6,
                                                .rate_bound = 40e9,
                                                .uses = uses});
    workload_.depend(source, transfer, 0);
    workload_.depend(transfer, target);
  }

  PipelineSpec spec_;
  Workload workload_;
  std::vector<StreamId> compute_;
  std::array<std::vector<StreamId>, 4> transfer_;  // send and receive, down and up
  std::vector<ResourceId> links_;
  std::vector<std::vector<TaskId>> forward_;  // [stage][micro-batch]
  std::vector<std::vector<TaskId>> backward_;
};

void replay_pipeline(benchmark::State& state, bool share_links) {
  Workload workload =
      Pipeline({static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), share_links})
          .take();
  workload.seal();
  std::uint64_t events = 0;
  for (auto _ : state) {
    const Result<Replay> replayed = replay(workload);
    if (!replayed) return state.SkipWithError("the pipeline did not end");
    events += replayed->events;
  }
  state.counters["events_per_s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

void BM_Pipeline(benchmark::State& state) { replay_pipeline(state, false); }
void BM_PipelineWithContention(benchmark::State& state) { replay_pipeline(state, true); }
BENCHMARK(BM_Pipeline)->Args({64, 512})->Args({8, 96})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_PipelineWithContention)->Args({64, 512})->Unit(benchmark::kMillisecond);

// Building and replaying once, as a forecast of one layout does.
void BM_PipelineBuiltOnce(benchmark::State& state) {
  std::uint64_t events = 0;
  for (auto _ : state) {
    const Workload workload =
        Pipeline({static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), false})
            .take();
    const Result<Replay> replayed = replay(workload);
    if (!replayed) return state.SkipWithError("the pipeline did not end");
    events += replayed->events;
  }
  state.counters["events_per_s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_PipelineBuiltOnce)->Args({64, 512})->Unit(benchmark::kMillisecond);

// One max-min solve: n activities over n/4 resources, three uses each, all bounds different.
void BM_MaxMin(benchmark::State& state) {
  const int n = static_cast<int>(state.range(0));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> weight(0.5, 2.0);
  std::uniform_int_distribution<int> resource(0, std::max(1, n / 4) - 1);
  MaxMinSolver solver;
  for (auto _ : state) {
    solver.clear();
    for (int r = 0; r < std::max(1, n / 4); ++r) solver.add_resource(weight(random));
    for (int a = 0; a < n; ++a) {
      solver.add_activity(weight(random), 1);
      for (int u = 0; u < 3; ++u) solver.add_use(resource(random), weight(random));
    }
    solver.solve();
    benchmark::DoNotOptimize(solver.rate(0));
  }
}
BENCHMARK(BM_MaxMin)->Arg(4)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace stepcast::sim

int main(int argc, char** argv) { return stepcast::run_benchmarks(argc, argv); }
