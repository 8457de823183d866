// SPDX-License-Identifier: Apache-2.0
// Outer steps between islands: a mean step, what a meeting takes, and what it keeps in memory.
#include "predict/outer_step.h"

#include <gtest/gtest.h>

#include <string>

#include "core/each.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

// Islands are sites of two nodes each.
Scenario in_islands(std::int64_t islands, const std::string& outer, const std::string& wan = "10",
                    const std::string& way = "20 ms") {
  return scenario_from(R"({"stepcast": 1, "model": "gpt3-350m", "cluster": {"base": "dgx-h100",
      "nodes": )" + std::to_string(2 * islands) +
                       R"(, "sites": )" + std::to_string(islands) + R"(, "wan": ")" + wan +
                       R"( Gb/s", "wan_latency": ")" + way +
                       R"("}, "training": {"global_batch": 64, "outer": {"islands": )" +
                       std::to_string(islands) + outer + "}}}");
}

Scenario lone_island() {
  return scenario_from(R"({"stepcast": 1, "model": "gpt3-350m", "cluster": "dgx-h100x2",
      "training": {"global_batch": 64, "framework": "fsdp"}})");
}

Prediction outer_forecast(const Scenario& scenario) {
  auto out = predict(scenario, source_folders());
  EXPECT_TRUE(out.has_value()) << (out ? std::string() : to_string(out.error()));
  return out ? *out : Prediction{};
}

// The inner step is the forecast of an island by itself, and the mean step has its part of one
// outer step. All islands together do the tokens.
TEST(OuterStep, IsSharedByTheStepsOfItsPeriod) {
  const Prediction inner = outer_forecast(lone_island());
  for (const std::int64_t every : {10, 100}) {
    const Prediction mean = outer_forecast(in_islands(2, R"(, "every": )" + std::to_string(every)));
    const Seconds once = mean.outer.exposed + mean.outer.update;
    EXPECT_NEAR(mean.outer.inner_step.value(), inner.step_time.value(),
                1e-9 * inner.step_time.value());
    EXPECT_NEAR(mean.step_time.value(),
                (inner.step_time + once / static_cast<double>(every)).value(), 1e-9);
    EXPECT_NEAR(mean.time.total().value(), mean.step_time.value(), 1e-6 * mean.step_time.value());
    EXPECT_GT(once.value(), 0);
    EXPECT_NEAR(mean.tokens_per_s, 2 * inner.tokens_per_s * (inner.step_time / mean.step_time), 1);
  }
}

// P parameters in fp32: an island sends 4 P x 2 (k - 1)/k bytes over its link of 10 Gb/s, in 16
// groups at once whose rings take the way 2 (k - 1) times. The link is all that holds them back.
TEST(OuterStep, TakesWhatTheLinkTakesForAllParameters) {
  const double parameters = static_cast<double>(count_parameters(lone_island().model).total());
  for (const std::int64_t islands : {2, 4}) {
    const double k = static_cast<double>(islands);
    const Prediction mean = outer_forecast(in_islands(islands, ""));
    const double sent = 4 * parameters * 2 * (k - 1) / k;
    EXPECT_NEAR(mean.outer.sent.value(), sent, 1e-3 * sent);
    const double least = sent / 1.25e9 + 2 * (k - 1) * 20e-3;
    EXPECT_GE(mean.outer.message.value(), 0.999 * least);
    EXPECT_LE(mean.outer.message.value(), 1.02 * least);
    EXPECT_NE(mean.outer.bound_by.find("wan0"), std::string::npos);
    EXPECT_EQ(mean.outer.exposed, mean.outer.message);
  }
}

TEST(OuterStep, NarrowGradientsAreSentInLessBytes) {
  const Bytes wide = outer_forecast(in_islands(2, "")).outer.sent;
  EXPECT_NEAR(wide / outer_forecast(in_islands(2, R"(, "precision": "bf16")")).outer.sent, 2, 1e-3);
  EXPECT_NEAR(wide / outer_forecast(in_islands(2, R"(, "precision": "fp4")")).outer.sent, 8, 1e-2);
}

// Each of f fragments takes what its bytes take, and is exposed for what the steps beside it do
// not hide; a link that hides it carries the bytes of a fragment in these steps.
TEST(OuterStep, FragmentsHideBehindSteps) {
  for (const std::int64_t beside : {1, 2, 8}) {
    const OuterStep outer = outer_forecast(in_islands(2, R"(, "every": 100, "fragments": 4,
        "overlap_steps": )" + std::to_string(beside)))
                                .outer;
    const Seconds behind = static_cast<double>(beside) * outer.inner_step;
    const Seconds late = std::max(Seconds(), outer.message - behind);
    EXPECT_NEAR(outer.exposed.value(), 4 * late.value(), 1e-12);
    EXPECT_NEAR(outer.to_hide.value(), (outer.sent / 4.0 / behind).value(), 1);
  }
  const Seconds whole = outer_forecast(in_islands(2, "", "10", "1 ms")).outer.message;
  const Seconds part =
      outer_forecast(in_islands(2, R"(, "fragments": 4)", "10", "1 ms")).outer.message;
  EXPECT_NEAR(whole / part, 4, 0.05);
}

// 8 bytes of each parameter that a rank's optimizer updates, on the device or on the host.
TEST(OuterStep, KeepsOldParametersAndAMomentum) {
  const auto outer = static_cast<std::size_t>(MemoryCategory::kOuter);
  const Prediction kept = outer_forecast(in_islands(2, ""));
  const Prediction away = outer_forecast(in_islands(2, R"(, "host": true)"));
  const double parameters = static_cast<double>(count_parameters(lone_island().model).total());
  for (const RankClass& one : each_of(kept.rank_classes)) {
    EXPECT_NEAR(static_cast<double>(one.memory[outer]), 8 * parameters / 16, 1e-3 * parameters);
  }
  for (const RankClass& one : each_of(away.rank_classes)) EXPECT_EQ(one.memory[outer], 0);
  EXPECT_EQ(kept.peak_memory - away.peak_memory, kept.rank_classes.front().memory[outer]);
  EXPECT_GE(away.peak_host, 8 * kept.rank_classes.front().memory[outer]);
  EXPECT_GT(away.outer.update, kept.outer.update);
}

}  // namespace
}  // namespace stepcast
