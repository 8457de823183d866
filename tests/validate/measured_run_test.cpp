// SPDX-License-Identifier: Apache-2.0
#include "validate/measured_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/temporary_folder.h"
#include "predict/prediction.h"
#include "validate/made_run.h"
#include "validate/measured_slices.h"

namespace stepcast {
namespace {

using nlohmann::json;
using testing::gpt;
using testing::GptCase;
using testing::Play;
using testing::TemporaryFolder;

constexpr double kPeriod = 10;

// Writes, reads and measures a run of `steps` steps, one every 10 s, in which every rank plays
// `play`; `change` may alter a rank's file.
struct Played {
  Played(
      const GptCase& c, int steps, const Play& play,
      const std::function<void(json&)>& change = [](json&) {})
      : scenario(gpt(c)), program(lower(scenario)), grid(scenario.layout) {
    std::vector<double> begins;
    for (int i = 0; i < steps; ++i) begins.push_back(kPeriod * i);
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(grid.size()); ++r) {
      json rank = testing::played(grid, program, RankId(r), begins, play);
      change(rank);
      testing::write_rank(folder / "", rank);
    }
  }
  Result<std::vector<RankFile>> files() const {
    return read_rank_files(folder / "", program, grid);
  }
  MeasuredRun measured() const {
    const auto read = files();
    EXPECT_TRUE(read) << (read ? "" : to_string(read.error()));
    return read ? measure(scenario, program, grid, *read) : MeasuredRun{};
  }

  TemporaryFolder folder;
  Scenario scenario;
  Program program;
  RankGrid grid;
};

double begin_of_step(double now) { return kPeriod * std::floor(now / kPeriod); }

// Two stages, two micro-batches, forward and backward 1 s each, 1F1B, messages 0.25 s:
//   stage 0: F0 0-1, F1 1-2, B0 3.5-4.5, B1 5.5-6.5
//   stage 1: F0 1.25-2.25, B0 2.25-3.25, F1 3.25-4.25, B1 4.25-5.25
MeasuredSpan play_pipeline(RankId rank, const Role& role, std::size_t i, double now) {
  const Instruction& what = role.instructions[i];
  const double begin = begin_of_step(now);
  const Slot* slot = what.slot();
  const bool forward = slot == nullptr || slot->pass == Pass::kForward;
  const auto batch = static_cast<std::size_t>(slot == nullptr ? 0 : slot->micro_batch);
  constexpr double kForwards[2][2] = {{0, 1}, {1.25, 3.25}};  // by stage and micro-batch
  constexpr double kBackwards[2][2] = {{3.5, 5.5}, {2.25, 4.25}};
  if (what.is<RunPass>()) {
    const auto& starts = (forward ? kForwards : kBackwards)[rank.index()];
    return {begin + starts[batch], begin + starts[batch] + 1};
  }
  if (what.is<Send>()) return {now, now + 0.25};
  if (what.is<Receive>()) {
    const double sent = forward ? kForwards[0][batch] + 1 : kBackwards[1][batch] + 1;
    return {now, std::max(now, begin + sent + 0.25)};
  }
  // The norm of the gradients meets when stage 0 has ended its last backward.
  if (what.is<CollectiveCall>()) return {now, begin + 6.5};
  return {now, now};
}

GptCase two_stages() {
  GptCase c;
  c.pp = 2;
  c.global_batch = 2;
  c.tied = false;
  return c;
}

TEST(MeasuredRun, StepTimeIsThePeriodBetweenEnds) {
  // Ends at 6.5, 16.5, 26.5 and, the last step beginning half a second late, 37.
  const Played run(two_stages(), 4, play_pipeline, [](json& rank) {
    rank["steps"][3]["end_s"] = rank["steps"][3]["end_s"].get<double>() + 0.5;
  });
  const MeasuredRun measured = run.measured();
  EXPECT_EQ(measured.periods, 3u);
  EXPECT_NEAR(measured.step_time.median, 10, 1e-12);
  // Quantiles of 10, 10, 10.5: the last one at place 1.8 of 2, so 0.8 of the way.
  EXPECT_NEAR(measured.step_time.p10, 10, 1e-12);
  EXPECT_NEAR(measured.step_time.p90, 10.4, 1e-12);
  // 2 sequences of 256 tokens in 10 s.
  EXPECT_NEAR(measured.tokens_per_s, 51.2, 1e-12);
  EXPECT_NEAR(measured.tokens_per_s_per_gpu, 25.6, 1e-12);
  EXPECT_NEAR(measured.model_tflops_per_gpu, model_flops(run.scenario).value() / 10 / 2 / 1e12,
              1e-15);
}

TEST(MeasuredRun, BubbleIsWhatIsIdleInTheLargestSpan) {
  const MeasuredRun measured = Played(two_stages(), 3, play_pipeline).measured();
  // Both are busy for 4 s; the spans are 6.5 s and 4 s.
  EXPECT_NEAR(measured.bubble_fraction.median, 1 - 4 / 6.5, 1e-12);
  ASSERT_EQ(measured.ranks.size(), 2u);
  EXPECT_NEAR(measured.ranks[1].busy.value(), 4, 1e-12);
}

TEST(MeasuredRun, WaitsForAStageAreBubbleUntilTheMessageIsInFlight) {
  const TimeParts time = Played(two_stages(), 3, play_pipeline).measured().time;
  EXPECT_NEAR(time.compute.value(), 4, 1e-12);
  // Stage 0 waits from 2 to 3.5 and from 4.5 to 5.5, the last quarter of each in flight.
  EXPECT_NEAR(time.bubble.value(), 1.25 + 0.75, 1e-12);
  EXPECT_NEAR(time.exposed_pp.value(), 0.5, 1e-12);
  EXPECT_NEAR(time.other.value(), kPeriod - 6.5, 1e-12);
  EXPECT_NEAR(time.total().value(), kPeriod, 1e-12);
}

TEST(MeasuredRun, WaitsForReplicasAreExposedDataParallelTime) {
  GptCase c;
  c.dp = 2;
  c.global_batch = 2;
  // Forward 1 s, backward 1 s, of rank 1 half a second more; then one reduction of a second that
  // begins when both have come to it.
  const Play play = [](RankId rank, const Role& role, std::size_t i, double now) -> MeasuredSpan {
    const Instruction& what = role.instructions[i];
    if (const auto* run = what.as<RunPass>()) {
      const bool late = rank.value == 1 && run->slot.pass != Pass::kForward;
      return {now, now + (late ? 1.5 : 1)};
    }
    const auto* call = what.as<CollectiveCall>();
    const bool reduces = call != nullptr && call->group == AxisGroup::kData;
    const double reduced = begin_of_step(now) + 3.5;
    return {now, reduces ? std::max(now, reduced) : now};
  };
  const MeasuredRun measured = Played(c, 3, play).measured();
  EXPECT_EQ(measured.critical_rank.value, 0);  // both end at 3.5: the lowest
  EXPECT_NEAR(measured.time.compute.value(), 2, 1e-12);
  EXPECT_NEAR(measured.time.exposed_dp.value(), 1.5, 1e-12);
  EXPECT_NEAR(measured.time.bubble.value(), 0, 1e-12);
  // The gap is behind the last backward, so outside the span: busy 2 and 2.5 of 2.5 s.
  EXPECT_NEAR(measured.bubble_fraction.median, 1 - (2 / 2.5 + 1) / 2, 1e-12);
}

TEST(MeasuredRun, OperationsSayWhatPassesWereSpentOn) {
  const auto operation = [](const char* signature, const char* phase, double total) {
    return json{{"signature", signature}, {"name", "x"},           {"phase", phase},
                {"calls_per_step", 2},    {"median_s", total / 2}, {"total_s_per_step", total}};
  };
  const MeasuredRun measured =
      Played(two_stages(), 3, play_pipeline, [&](json& rank) {
        rank["operations"] = {operation("gemm forward", "forward", 1.5),
                              operation("gemm forward", "recompute", 0.5),
                              operation("collective all_reduce tp", "backward", 0.75),
                              operation("collective all_reduce cp", "backward", 0.25),
                              operation("collective all_gather cp", "backward", 8)};
        rank["operations"][2].update(json{{"group", "tp"}, {"exposed_s_per_step", 0.75}});
        rank["operations"][3].update(json{{"group", "cp"}, {"exposed_s_per_step", 0.25}});
        // Kernels ran beside most of it.
        rank["operations"][4].update(json{{"group", "cp"}, {"exposed_s_per_step", 0.125}});
      }).measured();
  EXPECT_NEAR(measured.time.compute.value(), 1.5, 1e-12);
  EXPECT_NEAR(measured.time.recompute.value(), 0.5, 1e-12);
  EXPECT_NEAR(measured.time.exposed_tp.value(), 0.75, 1e-12);
  EXPECT_NEAR(measured.time.exposed_cp.value(), 0.375, 1e-12);
  // The passes took 4 s.
  EXPECT_NEAR(measured.time.other.value(), kPeriod - 6.5 + 4 - 3.125, 1e-12);
  EXPECT_NEAR(measured.time.total().value(), kPeriod, 1e-12);
}

TEST(MeasuredRun, PeakIsOfTheFullestRankAndNumericsOfTheWorst) {
  const MeasuredRun measured = Played(two_stages(), 2, play_pipeline, [](json& rank) {
                                 const double loss = rank["rank"] == 0 ? 1e-7 : 2e-7;
                                 rank["numerics"] = {{"loss_relative_error", loss},
                                                     {"parameter_relative_error", 3e-7 - loss}};
                               }).measured();
  EXPECT_EQ(measured.peak_memory, 1001);
  ASSERT_TRUE(measured.numerics);
  EXPECT_DOUBLE_EQ(measured.numerics->loss_relative_error, 2e-7);
  EXPECT_DOUBLE_EQ(measured.numerics->parameter_relative_error.value(), 2e-7);
}

std::string errors_after(const std::function<void(json&)>& change) {
  const auto files = Played(two_stages(), 2, play_pipeline, change).files();
  return files ? "" : to_string(files.error());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RankFiles, NameTheFileAndTheKeyOfWhatIsWrong) {
  EXPECT_EQ(errors_after([](json&) {}), "");
  const std::string stage = errors_after([](json& rank) { rank["stage"] = 0; });
  EXPECT_TRUE(has(stage, "rank-1.json: stage: 0 is not what the layout gives")) << stage;
  EXPECT_FALSE(has(stage, "rank-0.json")) << stage;
  const std::string spans = errors_after([](json& rank) { rank["steps"][1]["spans"].erase(0); });
  EXPECT_TRUE(has(spans, "steps[1].spans: ")) << spans;
  EXPECT_TRUE(has(spans, "another program")) << spans;
  EXPECT_TRUE(has(errors_after([](json& rank) { rank["steps"].erase(0); }), "too few"));
  EXPECT_TRUE(has(errors_after([](json& rank) {
                    rank["steps"][0]["spans"][0] = {2, 1};
                  }),
                  "steps[0].spans[0]: [2,1] is not a span"));
  EXPECT_TRUE(has(errors_after([](json& rank) {
                    rank["operations"] = {{{"signature", "collective all_reduce"},
                                           {"name", "x"},
                                           {"phase", "forward"},
                                           {"calls_per_step", 1},
                                           {"median_s", 1},
                                           {"total_s_per_step", 1},
                                           {"group", "nobody"},
                                           {"exposed_s_per_step", 0}}};
                  }),
                  "operations[0].group: 'nobody' is not a group of ranks"));
  EXPECT_TRUE(has(errors_after([](json& rank) { rank["peak_memory"] = 1; }), "peak_memory"));
  EXPECT_TRUE(has(errors_after([](json& rank) { rank.erase("peak_memory_bytes"); }), "missing"));
}

TEST(RankFiles, HaveAllTheSameSteps) {
  const std::string errors = errors_after([](json& rank) {
    if (rank["rank"] == 1) rank["steps"].push_back(rank["steps"][0]);
  });
  EXPECT_TRUE(has(errors, "rank-1.json: steps: 3 steps, and rank 0 has 2")) << errors;
}

TEST(RankFiles, AreAllThere) {
  const Played run(two_stages(), 2, play_pipeline);
  std::filesystem::remove(run.folder / "rank-1.json");
  const auto files = run.files();
  ASSERT_FALSE(files);
  EXPECT_TRUE(has(to_string(files.error()), "rank-1.json"));
}

TEST(MeasuredSlices, AreTheMedianStepFromItsBegin) {
  const Played played(two_stages(), 3, play_pipeline);
  const auto files = played.files();
  ASSERT_TRUE(files) << to_string(files.error());
  std::vector<std::vector<double>> starts(2);  // of passes, by stage
  for (const TraceSlice& slice : measured_slices(played.program, played.grid, *files)) {
    EXPECT_NE(slice.stream, Stream::kReceiveForward);
    EXPECT_NE(slice.stream, Stream::kReceiveBackward);
    if (slice.stream == Stream::kCompute && slice.chunk >= 0) {
      starts[static_cast<std::size_t>(slice.rank_class)].push_back(slice.start.value());
      EXPECT_NEAR(slice.duration.value(), 1, 1e-9);
    }
  }
  for (auto& own : starts) std::sort(own.begin(), own.end());
  EXPECT_EQ(starts[0], (std::vector<double>{0, 1, 3.5, 5.5}));
  EXPECT_EQ(starts[1], (std::vector<double>{1.25, 2.25, 3.25, 4.25}));
}

// Two ranks on one machine of two processors, for ten seconds: both were at work for 19 s, and the
// ranks for 6 and 7 of them, so others took 6 s of 20.
TEST(MeasuredRun, OthersOnTheMachineAreWhatNoRankUsed) {
  const Played run(two_stages(), 2, play_pipeline, [](json& rank) {
    rank["processors"] = {
        {"span_s", 20}, {"busy_s", 19}, {"stolen_s", 1}, {"own_s", rank["rank"] == 0 ? 6 : 7}};
  });
  const MeasuredRun measured = run.measured();
  ASSERT_TRUE(measured.load);
  EXPECT_EQ(measured.load->host, "here");
  EXPECT_DOUBLE_EQ(measured.load->processors.others_fraction(), 6.0 / 20);
  EXPECT_DOUBLE_EQ(measured.load->processors.stolen_fraction(), 1.0 / 20);
}

// Each rank alone on its machine: the machine of rank 1 is the one that others used most.
TEST(MeasuredRun, TheMachineThatOthersUsedMostIsNamed) {
  const Played run(two_stages(), 2, play_pipeline, [](json& rank) {
    const bool first = rank["rank"] == 0;
    rank["host"] = first ? "quiet" : "busy";
    rank["processors"] = {
        {"span_s", 20}, {"busy_s", first ? 10 : 15}, {"stolen_s", 0}, {"own_s", 10}};
  });
  const MeasuredRun measured = run.measured();
  ASSERT_TRUE(measured.load);
  EXPECT_EQ(measured.load->host, "busy");
  EXPECT_DOUBLE_EQ(measured.load->processors.others_fraction(), 5.0 / 20);
}

TEST(MeasuredRun, AMachineThatDoesNotTellHasNoLoad) {
  EXPECT_FALSE(Played(two_stages(), 2, play_pipeline).measured().load);
}

}  // namespace
}  // namespace stepcast
