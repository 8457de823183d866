// SPDX-License-Identifier: Apache-2.0
// Activations that go to host memory and come back: how long the way takes, what runs beside it,
// and what lies where meanwhile.
#include <gtest/gtest.h>

#include "offloaded_program.h"
#include "predict/memory_replay.h"
#include "predict/simulation.h"
#include "predict/timeline.h"
#include "scenario_from.h"
#include "timed_blocks.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

GptCase four_micro_batches() {
  GptCase c;
  c.layers = 2;
  c.global_batch = 4;
  c.schedule = "gpipe";  // all four forwards, then all four backwards
  return c;
}

// Blocks of a second each, and their copies.
struct CopyReplay {
  explicit CopyReplay(const GptCase& c)
      : scenario(gpt(c)), grid(scenario.layout), program(testing::offloaded(lower(scenario))) {
    const CollectiveCosts collectives(scenario.cluster, "");
    const Traffic traffic = place_traffic(scenario, program, grid, collectives);
    const Symmetry symmetry = find_symmetry(scenario, grid, traffic, collectives, true);
    const BlockId layer = program.roles.front().chunks.front().blocks[1];
    const KernelCosts kernels = testing::seconds_for(scenario, program, {layer});
    const RunCosts costs(scenario, program, grid, symmetry, kernels, collectives);
    const SimulationInput input{scenario, program, grid,  traffic, symmetry,
                                costs,    kNoHost, false, true};
    auto result = simulate(input, 2);
    EXPECT_TRUE(result.has_value()) << (result ? std::string() : to_string(result.error()));
    if (!result) return;
    simulation = std::move(*result);
    timeline = read_timeline(input, simulation, 0, 1);
  }

  struct Span {
    const Instruction* what;
    double start, end;
  };
  template <class Kind>
  std::vector<Span> spans() const {
    std::vector<Span> out;
    const auto& tasks = simulation.tasks.back().front();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Instruction& what = program.roles.front().instructions[i];
      if (!tasks[i].device.valid() || !what.is<Kind>()) continue;
      const sim::Interval& when = simulation.replay.tasks[tasks[i].device.index()];
      out.push_back({&what, sim::seconds(when.start).value(), sim::seconds(when.end).value()});
    }
    return out;
  }

  Scenario scenario;
  RankGrid grid;
  Program program;
  Simulation simulation;
  ClassTimeline timeline;
};

// A copy that has the way to itself takes its bytes over the bandwidth of PCIe.
TEST(HostCopy, TakesItsBytesOverTheBandwidthOfItsLink) {
  const CopyReplay replayed(four_micro_batches());
  const double rate = replayed.scenario.cluster.spec.pcie_bandwidth.value();
  const auto copies = replayed.spans<ActivationCopy>();
  ASSERT_EQ(copies.size(), 2u * 4 * 4);  // there and back, four micro-batches of four blocks
  for (const CopyReplay::Span& copy : copies) {
    EXPECT_GT(copy.what->bytes(), 0);
    EXPECT_NEAR(copy.end - copy.start, static_cast<double>(copy.what->bytes()) / rate, 1e-11);
  }
}

// Two GPUs under one PCIe switch share its way to the host.
TEST(HostCopy, SharesTheWayToTheHostWithItsNeighbour) {
  GptCase c = four_micro_batches();
  const CopyReplay alone(c);
  c.dp = 2;
  c.global_batch = 8;
  c.cluster = R"("base": "dgx-a100-80g", "nics_per_node": 4)";
  const CopyReplay together(c);
  const auto one = alone.spans<ActivationCopy>(), two = together.spans<ActivationCopy>();
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(two[i].end - two[i].start, 2 * (one[i].end - one[i].start), 1e-11);
  }
}

TEST(HostCopy, RunsBesideTheNextForward) {
  const CopyReplay replayed(four_micro_batches());
  const auto runs = replayed.spans<RunPass>();
  int beside = 0;
  for (const CopyReplay::Span& copy : replayed.spans<ActivationCopy>()) {
    for (const CopyReplay::Span& run : runs) {
      const bool later = run.what->slot()->micro_batch != copy.what->slot()->micro_batch;
      if (later && copy.start >= run.start && copy.start < run.end) ++beside;
    }
  }
  EXPECT_GT(beside, 0);
  // The forwards do not wait: they follow each other without a gap.
  for (int m = 0; m + 1 < 4; ++m) EXPECT_NEAR(runs[m].end, runs[m + 1].start, 1e-12);
}

// One micro-batch: nothing runs between the forward and the backward, which stands still until all
// that it needs has been there and back.
TEST(HostCopy, ThatABackwardWaitsForIsExposed) {
  GptCase c = four_micro_batches();
  c.global_batch = 1;
  c.layers = 6;
  const CopyReplay replayed(c);
  const auto copies = replayed.spans<ActivationCopy>();
  const auto runs = replayed.spans<RunPass>();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].what->waits.size(), 8u);  // more than fit beside the instruction itself
  for (const CopyReplay::Span& copy : copies) EXPECT_LE(copy.end, runs[1].start);
  const TimeParts& parts = replayed.timeline.parts;
  EXPECT_GT(parts.exposed_offload.value(), 0);
  EXPECT_NEAR(parts.exposed_offload.value(), runs[1].start - runs[0].end, 1e-11);
  const sim::Duration step = replayed.timeline.step_end - replayed.timeline.step_begin;
  EXPECT_NEAR(parts.total().value(), sim::seconds(step).value(), 1e-11);
}

// All four micro-batches lie in host memory at once; the device holds one.
TEST(HostCopy, MovesMemoryFromTheDeviceToItsHost) {
  const Program kept = lower(gpt(four_micro_batches()));
  const Program moved = testing::offloaded(kept);
  ByteCount saved = 0;
  for (const BlockId block : moved.roles.front().chunks.front().blocks) {
    saved += total(saved_by(moved.block(block)));
  }
  const MemoryPeak before = replay_memory(kept, kept.roles.front());
  const MemoryPeak after = replay_memory(moved, moved.roles.front());
  EXPECT_EQ(before.host, 0);
  EXPECT_EQ(after.host, 4 * saved);
  EXPECT_EQ(total(before.parts) - total(after.parts), 3 * saved);
}

}  // namespace
}  // namespace stepcast
