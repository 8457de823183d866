// SPDX-License-Identifier: Apache-2.0
// Limits of a forecast: memory, foreseen before it is taken, and time, asked for often.
#include "predict/budget.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/work_limits.h"
#include "predict/prediction.h"
#include "program/program.h"
#include "scenario_from.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

double lowered_instructions(const Scenario& scenario) {
  const Program program = lower(scenario);
  return std::accumulate(program.roles.begin(), program.roles.end(), 0.0,
                         [](double sum, const Role& role) {
                           return sum + static_cast<double>(role.instructions.size());
                         });
}

std::vector<GptCase> long_steps() {
  std::vector<GptCase> out;
  for (const char* framework : {"megatron", "fsdp", "deepspeed", "native"}) {
    for (const int zero : {0, 1, 2, 3}) {
      if (zero == 1 && framework == std::string("fsdp")) continue;  // it has no such stage
      GptCase c;
      c.layers = 8;
      c.dp = 4;
      c.global_batch = 4 * 64;
      c.zero = zero;
      c.framework = framework;
      out.push_back(c);
      if (zero > 1) continue;
      c.pp = 4;
      out.push_back(c);
    }
  }
  for (const char* schedule : {"gpipe", "zb-h1", "zb-v", "dualpipe", "v-half"}) {
    GptCase c;
    c.layers = 16;
    c.pp = 4;
    c.global_batch = 64;
    c.schedule = schedule;
    const int chunks = static_cast<int>(rules_of(schedule_named(schedule)).chunks);
    c.virtual_stages = chunks;
    out.push_back(c);
  }
  return out;
}

// Below what is there, and a limit would be passed; far above it, and what is possible would be
// refused.
TEST(Budget, ForeseesTheInstructionsOfEveryKindOfStep) {
  for (const GptCase& c : long_steps()) {
    const Scenario scenario = gpt(c);
    const double foreseen = foreseen_instructions(scenario), there = lowered_instructions(scenario);
    EXPECT_GE(foreseen, 0.8 * there) << testing::text_of(c);
    EXPECT_LE(foreseen, 4 * there + 200) << testing::text_of(c);
  }
}

// A bucket for each element: 3.4 million of them.
TEST(Budget, CountsTheBucketsThatAFrameworkCuts) {
  for (const int zero : {0, 1}) {
    GptCase c;
    c.framework = "deepspeed";
    c.dp = 2;
    c.zero = zero;
    c.extra_training = R"(, "bucket_elements": 100)";
    const Scenario scenario = gpt(c);
    const double foreseen = foreseen_instructions(scenario), there = lowered_instructions(scenario);
    EXPECT_GE(foreseen, 0.8 * there) << zero;
    EXPECT_LE(foreseen, 3 * there) << zero;
  }
}

TEST(Budget, AForecastBeyondTheLimitIsRefusedWithWhatItNeeds) {
  GptCase c;
  c.pp = 4;
  c.global_batch = 1024;
  const Scenario scenario = gpt(c);
  EXPECT_TRUE(predict(scenario, source_folders(), {}));
  const MemoryScope scope(1'000'000);
  const auto refused = predict(scenario, source_folders(), {});
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().size(), 1u);
  EXPECT_NE(refused.error().front().message.find("GB of memory"), std::string::npos);
  EXPECT_NE(refused.error().front().hint.find("--memory-limit"), std::string::npos);
}

// 4 instructions of each of 32 ranks would fit; all ranks apart do not.
TEST(Budget, CountsTheRanksThatAreReplayedApart) {
  GptCase c;
  c.dp = 32;
  c.global_batch = 32 * 64;
  const Scenario scenario = gpt(c);
  PredictOptions unfolded;
  unfolded.fold = false;
  const MemoryScope scope(2'000'000);
  EXPECT_TRUE(predict(scenario, source_folders(), {}));
  EXPECT_FALSE(predict(scenario, source_folders(), unfolded));
}

TEST(Budget, CountsTheKernelsOfATrace) {
  GptCase c;
  c.global_batch = 256;
  const Scenario scenario = gpt(c);
  PredictOptions traced;
  traced.trace = traced.kernels = true;
  const MemoryScope scope(10'000'000);
  PredictOptions plain;
  plain.trace = true;
  plain.kernels = false;
  EXPECT_TRUE(predict(scenario, source_folders(), plain));
  EXPECT_FALSE(predict(scenario, source_folders(), traced));
}

// Stopped at any of its questions a forecast ends with no errors, and it asks in each of its parts:
// for each stage as it is lowered, priced, built, read and summed up.
TEST(StoppedForecast, EndsWhereverItStands) {
  GptCase c;
  c.pp = 8;
  c.layers = 8;
  c.global_batch = 64;
  const Scenario scenario = gpt(c);
  int asked = 0;
  PredictOptions options;
  options.stop = [&] {
    ++asked;
    return false;
  };
  ASSERT_TRUE(predict(scenario, source_folders(), options));
  const int all = asked;
  EXPECT_GE(all, 5 * c.pp);
  for (int last = 1; last <= all; ++last) {
    asked = 0;
    options.stop = [&] { return ++asked >= last; };
    const auto stopped = predict(scenario, source_folders(), options);
    ASSERT_FALSE(stopped) << last;
    EXPECT_TRUE(stopped.error().empty());
  }
}

}  // namespace
}  // namespace stepcast
