// SPDX-License-Identifier: Apache-2.0
// Ranks on the cores of one machine: what kernels and communication leave to each other, in closed
// form, and the profile that may price them.
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/this_machine.h"
#include "core/temporary_folder.h"
#include "cost/collective_cost.h"
#include "predict/prediction.h"
#include "predict/simulation.h"
#include "predict/timeline.h"
#include "scenario_from.h"
#include "timed_blocks.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

// Runs in fp32 on this machine, where `cores` are shared; 0: a core for each rank.
std::string local_text(GptCase c, int cores, const std::string& profile = "none") {
  c.precision = "fp32";
  c.cluster = R"("base": "local", "shared_cores": )" + std::to_string(cores);
  std::string text = text_of(c);
  text.pop_back();
  return text + R"(, "profile": ")" + profile + "\"}";
}

// The blocks whose passes take a second: FSDP runs them one by one, the others all in a row.
std::vector<BlockId> timed_blocks(const Scenario& scenario, const Program& program) {
  std::vector<BlockId> blocks = program.roles.front().chunks.front().blocks;
  if (scenario.training.framework != framework_named("fsdp")) blocks.resize(1);
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

// Runs of one second, transfers of `data` in the data-parallel groups and of no time elsewhere.
struct LocalReplay {
  LocalReplay(const std::string& text, const CollectivePrice& data)
      : scenario(scenario_from(text)), grid(scenario.layout), program(lower(scenario)) {
    const CollectiveCosts collectives(scenario.cluster, "");
    traffic = place_traffic(scenario, program, grid, collectives);
    CollectivePrice nothing;
    nothing.rate_bound = BytesPerSecond(1);
    for (GroupTraffic& groups : traffic.groups) {
      for (GroupOrbit& orbit : groups.orbits) {
        for (Priced& priced : orbit.prices) {
          priced = {groups.group == AxisGroup::kData ? data : nothing, -1};
        }
      }
    }
    symmetry = find_symmetry(scenario, grid, traffic, collectives, true);
    const KernelCosts kernels =
        testing::seconds_for(scenario, program, timed_blocks(scenario, program));
    const RunCosts costs(scenario, program, grid, symmetry, kernels, collectives);
    const SimulationInput input{scenario, program, grid,  traffic, symmetry,
                                costs,    kNoHost, false, true};
    auto result = simulate(input, 2);
    EXPECT_TRUE(result.has_value()) << (result ? std::string() : to_string(result.error()));
    if (!result) return;
    simulation = std::move(*result);
    const ClassTimeline timeline = read_timeline(input, simulation, 0, 1);
    step = sim::seconds(timeline.step_end - timeline.step_begin).value();
  }

  struct Span {
    const Instruction* what;
    double start, end;
  };
  // The spans of rank class 0 in the last step.
  std::vector<Span> spans() const {
    std::vector<Span> out;
    const auto& tasks = simulation.tasks.back().front();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].device.valid()) continue;
      const sim::Interval& when = simulation.replay.tasks[tasks[i].device.index()];
      out.push_back({&program.roles.front().instructions[i], sim::seconds(when.start).value(),
                     sim::seconds(when.end).value()});
    }
    return out;
  }

  Scenario scenario;
  RankGrid grid;
  Program program;
  Traffic traffic{{1, 0}, {}, {}};
  Symmetry symmetry;
  Simulation simulation;
  double step = 0;
};

CollectivePrice price_of(double seconds, double cpu_share) {
  CollectivePrice price;
  price.work = Bytes(seconds > 0 ? 1 : 0);
  price.rate_bound = BytesPerSecond(seconds > 0 ? 1 / seconds : 1);
  price.cpu_share = cpu_share;
  return price;
}

// Four ranks compute all the time, on two cores each gets half of one.
TEST(SharedCores, FourRanksOnTwoTakeExactlyTwiceAsLong) {
  GptCase c;
  c.dp = 4;
  c.global_batch = 8;  // two micro-batches, forward and backward: four runs of a second
  const LocalReplay own(local_text(c, 0), price_of(0, 0));
  EXPECT_NEAR(own.step, 4, 1e-11);
  EXPECT_NEAR(LocalReplay(local_text(c, 4), price_of(0, 0)).step, own.step, 1e-11);
  EXPECT_NEAR(LocalReplay(local_text(c, 2), price_of(0, 0)).step, 2 * own.step, 1e-11);
  EXPECT_NEAR(LocalReplay(local_text(c, 3), price_of(0, 0)).step, own.step * 4 / 3, 1e-11);
}

// All four ranks are in the reduction, at 0.8 of a core each: 3.2 cores' worth of work per second
// on two cores.
TEST(SharedCores, AreSharedByTheMembersOfACollective) {
  GptCase c;
  c.dp = 4;
  const LocalReplay replayed(local_text(c, 2), price_of(0.5, 0.8));
  int seen = 0;
  for (const LocalReplay::Span& span : replayed.spans()) {
    const auto* call = span.what->as<CollectiveCall>();
    if (call == nullptr || call->group != AxisGroup::kData) continue;
    EXPECT_NEAR(span.end - span.start, 0.5 * 1.6 * call->pieces, 1e-10);
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

// A transfer that would take F alone and a share s of the core, beside kernels that want all of it.
// Max-min: the transfer has s if s <= 1/2 and takes F; otherwise both have 1/2 and it takes 2 s F.
// With the weight s / (m - s) against the kernel's 1 the transfer has s / m of the core and takes m
// F. In every case it costs s F of the core, and the run beside it takes that much longer. With
// `crowd` ranks to a core each rank has 1 / crowd of it: the weight is s / (m / crowd - s), and
// kernels take `crowd` times as long.
void expect_shared_core(double share, double stretch, double weight = 1, int crowd = 1) {
  const double alone = 0.125;
  GptCase c;
  c.dp = 2 * crowd;
  c.zero = 3;
  c.framework = "fsdp";
  c.global_batch = c.dp;
  CollectivePrice price = price_of(alone, share);
  price.core_weight = weight;
  const LocalReplay replayed(local_text(c, crowd > 1 ? 2 : 0), price);
  const std::vector<LocalReplay::Span> spans = replayed.spans();
  const auto is_transfer = [](const LocalReplay::Span& span) {
    return span.what->is<CollectiveCall>() && span.end > span.start;
  };
  const auto inside = [](const LocalReplay::Span& a, const LocalReplay::Span& b) {
    return a.start >= b.start && a.end <= b.end;
  };
  const auto apart = [](const LocalReplay::Span& a, const LocalReplay::Span& b) {
    return a.end <= b.start || b.end <= a.start;
  };
  int runs = 0, single = 0;
  for (const LocalReplay::Span& run : spans) {
    if (!run.what->is<RunPass>()) continue;
    std::vector<const LocalReplay::Span*> beside;
    bool partly = false;
    for (const LocalReplay::Span& other : spans) {
      if (!is_transfer(other) || apart(other, run)) continue;
      beside.push_back(&other);
      partly |= !inside(other, run);
    }
    if (partly) continue;
    ++runs;
    const double lost = share * alone * static_cast<double>(beside.size());
    EXPECT_NEAR(run.end - run.start, crowd * (1 + lost), 1e-10);
    if (beside.size() != 1) continue;
    ++single;
    EXPECT_NEAR(beside[0]->end - beside[0]->start, alone * stretch, 1e-10);
  }
  EXPECT_GT(runs, 2);
  EXPECT_GT(single, 0);
}

TEST(RankCore, ALightTransferTakesItsTimeAndTheKernelPays) { expect_shared_core(0.25, 1); }
TEST(RankCore, AHeavyTransferAndAKernelHaveHalfEach) { expect_shared_core(0.75, 1.5); }
TEST(RankCore, ATransferIsStretchedByItsWeight) {
  for (const double stretch : {1.0, 1.2, 3.0}) {
    expect_shared_core(0.25, stretch, 0.25 / (stretch - 0.25));
  }
}
TEST(SharedCores, StretchATransferAsMeasuredAmongAllRanks) {
  for (const double stretch : {1.1, 1.5, 3.0}) {
    expect_shared_core(0.125, stretch, 0.125 / (stretch / 2 - 0.125), 2);
  }
}
TEST(RankCore, ATransferThatTheProcessorDoesNotMoveCostsNothing) {
  GptCase c;
  c.dp = 2;
  c.zero = 3;
  c.framework = "fsdp";
  c.global_batch = 2;
  const LocalReplay replayed(local_text(c, 0), price_of(0.125, 0));
  int passes = 0;
  for (const LocalReplay::Span& span : replayed.spans()) {
    if (!span.what->is<RunPass>()) continue;
    EXPECT_NEAR(span.end - span.start, 1, 1e-10);
    ++passes;
  }
  EXPECT_GT(passes, 2);
}

TEST(LocalForecast, RestsOnTheDataSheetAndHoldsNoFramework) {
  GptCase c;
  c.dp = 2;
  const auto prediction = predict(scenario_from(local_text(c, 2, "")), source_folders());
  ASSERT_TRUE(prediction.has_value()) << to_string(prediction.error());
  EXPECT_GT(prediction->step_time.value(), 0);
  EXPECT_NEAR(prediction->provenance[static_cast<std::size_t>(Provenance::kDataSheet)], 1, 1e-12);
  EXPECT_EQ(prediction->peak_reserved, prediction->peak_memory);
  EXPECT_EQ(prediction->peak_device, prediction->peak_memory);
}

std::string profile_of(const std::string& processor, std::int64_t cores) {
  return R"({"stepcast_profile": 1, "name": "mine", "device": "cpu", "provenance": "measured",
    "machine": {"processor": ")" +
         processor + R"(", "cores": )" + std::to_string(cores) + R"(, "hostname": "here"},
    "host": {"collective": "5 us"},
    "log_error": {"gemm": 0.05, "attention": 0.05, "memory_bound": 0.05, "host": 0.3,
                  "collective": 0.1, "point_to_point": 0.1},
    "curves": [{"operation": "collective", "transport": "mpi", "collective": "all_reduce",
                "ranks": 2, "placement": [0, 0], "cpu_share": 0.5,
                "samples": [[4, 1e-5], [1000000, 1e-2]]}]})";
}

Result<Prediction> forecast_with(const std::string& profile) {
  const testing::TemporaryFolder folder;
  folder.write("mine.json", profile);
  GptCase c;
  c.dp = 2;
  return predict(scenario_from(local_text(c, 2, folder / "mine.json")), source_folders());
}

TEST(LocalForecast, TakesAProfileOfThisMachine) {
  const MachineFacts machine = this_machine();
  const auto prediction = forecast_with(profile_of(machine.processor, machine.cores));
  ASSERT_TRUE(prediction.has_value()) << to_string(prediction.error());
  EXPECT_GT(prediction->step_time.value(), 0);
}

TEST(LocalForecast, RefusesTheProfileOfAnotherMachine) {
  const MachineFacts machine = this_machine();
  const auto prediction = forecast_with(profile_of("Another CPU", machine.cores + 1));
  ASSERT_FALSE(prediction.has_value());
  ASSERT_EQ(prediction.error().size(), 2u) << to_string(prediction.error());
  const Error& error = prediction.error().front();
  EXPECT_EQ(error.path, "machine.processor");
  EXPECT_NE(error.file.find("mine.json"), std::string::npos);
  EXPECT_NE(error.message.find("Another CPU"), std::string::npos);
  EXPECT_NE(error.message.find(machine.processor), std::string::npos);
  EXPECT_NE(error.hint.find("calibrate"), std::string::npos);
  EXPECT_EQ(prediction.error().back().path, "machine.cores");
}

TEST(LocalForecast, SixteenBitsAreRefused) {
  GptCase c;
  std::string text = local_text(c, 0);
  text.replace(text.find("fp32"), 4, "bf16");
  auto document = JsonDocument::parse(text, "test.json");
  ASSERT_TRUE(document.has_value());
  const auto scenario = read_scenario(**document, source_folders());
  ASSERT_FALSE(scenario.has_value());
  EXPECT_NE(to_string(scenario.error()).find("has no bf16 arithmetic"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
