// SPDX-License-Identifier: Apache-2.0
// Collectives beside the kernels of their blocks train the same model as one after the other, in
// the memory that is forecast for them.
#include <gtest/gtest.h>

#include "asynchronous_program.h"
#include "core/each.h"
#include "core/seeded_random.h"
#include "execute/threaded_training.h"
#include "predict/memory_replay.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::GptCase;
using testing::is_collective;
using testing::on_streams;
using testing::train;
using testing::TrainedRun;

constexpr int kSteps = 3;

GptCase two_ranks() {
  GptCase c = testing::tiny_local();
  c.global_batch = 4;
  c.tp = 2;
  return c;
}

std::vector<GptCase> cases() {
  std::vector<GptCase> out(6, two_ranks());
  out[1].sequence_parallel = true;
  out[2].recompute = "full";
  out[3].sequence_parallel = true;
  out[3].recompute = "selective";
  out[4].sequence_parallel = true;
  out[4].dp = 2;
  out[4].zero = 3;
  out[5].pp = 2;
  out[5].framework = "megatron";
  return out;
}

ByteCount forecast_peak(const Program& program, const RankGrid& grid, std::int32_t rank) {
  return total(
      replay_memory(program, program.roles[static_cast<std::size_t>(grid.point(RankId(rank)).pp)])
          .parts);
}

// `beside` runs what `listed` does. Its sums are made in the same order, so that not a bit differs.
void expect_same_training(const Scenario& scenario, const Program& listed, const Program& beside) {
  const TrainedRun before = train(scenario, listed, kSteps),
                   after = train(scenario, beside, kSteps);
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.gradient_norm, before.gradient_norm);
  EXPECT_EQ(after.model.relative_error(before.model), 0);
  const RankGrid grid(scenario.layout);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    const auto rank = static_cast<std::size_t>(r);
    EXPECT_EQ(total(after.peaks[rank]) - total(before.peaks[rank]),
              forecast_peak(beside, grid, r) - forecast_peak(listed, grid, r));
    EXPECT_NEAR(static_cast<double>(total(after.peaks[rank])) /
                    static_cast<double>(forecast_peak(beside, grid, r)),
                1, 0.01);
  }
}

TEST(BlockStreams, TrainAsTheListInTheMemoryThatIsForecast) {
  for (const GptCase& c : each_of(cases())) {
    SCOPED_TRACE(testing::text_of(c));
    const Scenario scenario = testing::gpt(c);
    const Program listed = lower(scenario);
    expect_same_training(scenario, listed, asynchronous(listed));
  }
}

// Some collectives on the computing stream, others on either of the streams beside it.
TEST(BlockStreams, TrainAsTheListWhicheverCollectivesRunBeside) {
  SeededRandom random(5);
  GptCase c = two_ranks();
  c.sequence_parallel = true;
  const Scenario scenario = testing::gpt(c);
  const Program listed = lower(scenario);
  for (int round = 0; round < 6; ++round) {
    expect_same_training(scenario, listed, on_streams(listed, [&](const Operation& operation) {
                           return static_cast<BlockStream>(
                               is_collective(operation) ? random.below(kBlockStreams) : 0);
                         }));
  }
}

}  // namespace
}  // namespace stepcast
