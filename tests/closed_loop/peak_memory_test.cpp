// SPDX-License-Identifier: Apache-2.0
// The forecast's peak memory and what the executor's ledger counted while it trained are the same
// figure: one from lifetimes on paper, one from buffers that were there.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "execute/threaded_training.h"
#include "predict/memory_replay.h"

namespace stepcast {
namespace {

using testing::GptCase;

GptCase small(const char* framework) {
  GptCase c = testing::small_local();
  c.layers = 4;
  c.hidden = 64;
  c.heads = 4;
  c.vocab = 512;
  c.sequence = 64;
  c.global_batch = 8;
  c.framework = framework;
  return c;
}

void expect_equal_peaks(const GptCase& c, const char* what) {
  const Scenario scenario = testing::gpt(c);
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  const testing::TrainedRun trained = testing::train(scenario, 2);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    const Role& role = program.roles[static_cast<std::size_t>(grid.point(RankId(r)).pp)];
    const auto forecast = static_cast<double>(total(replay_memory(program, role).parts));
    const auto counted = static_cast<double>(total(trained.peaks[static_cast<std::size_t>(r)]));
    EXPECT_NEAR(counted / forecast, 1, 0.01) << what << ", rank " << r;
  }
}

TEST(PeakMemory, OfOneRankIsWhatWasForecast) {
  for (const char* recompute : {"none", "selective", "full"}) {
    GptCase c = small("native");
    c.recompute = recompute;
    expect_equal_peaks(c, recompute);
    c.attention = "unfused";
    expect_equal_peaks(c, recompute);
  }
}

TEST(PeakMemory, OfShardedStatesIsWhatWasForecast) {
  for (int zero = 0; zero <= 3; ++zero) {
    GptCase c = small("native");
    c.dp = 2;
    c.zero = zero;
    expect_equal_peaks(c, ("zero " + std::to_string(zero)).c_str());
  }
}

TEST(PeakMemory, OfFsdpAndDeepSpeedIsWhatWasForecast) {
  for (const char* framework : {"fsdp", "deepspeed"}) {
    GptCase c = small(framework);
    c.dp = 2;
    c.zero = 3;
    expect_equal_peaks(c, framework);
  }
}

TEST(PeakMemory, OfTensorParallelRanksIsWhatWasForecast) {
  for (const bool sequence_parallel : {false, true}) {
    GptCase c = small("native");
    c.tp = 2;
    c.sequence_parallel = sequence_parallel;
    expect_equal_peaks(c, sequence_parallel ? "sequence parallel" : "tensor parallel");
  }
}

TEST(PeakMemory, OfPipelineStagesIsWhatWasForecast) {
  const std::set<std::string> with_two_chunks = {"interleaved", "zb-v", "1f1b-v", "v-half",
                                                 "v-min"};
  for (const std::string schedule :
       {"gpipe", "1f1b", "interleaved", "zb-2p", "zb-v", "1f1b-v", "v-half", "v-min"}) {
    GptCase c = small("native");
    c.pp = 2;
    c.schedule = schedule;
    c.virtual_stages = with_two_chunks.contains(schedule) ? 2 : 1;
    expect_equal_peaks(c, schedule.c_str());
  }
}

}  // namespace
}  // namespace stepcast
