// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::scenario_from;
using testing::source_folders;
using testing::text_of;

TEST(Trace, TheMemoryTimelineReachesThePeakAndRunsForwardInTime) {
  GptCase c;
  c.pp = 4;
  c.layers = 8;
  const auto prediction = predict(scenario_from(text_of(c)), source_folders(), {.trace = true});
  ASSERT_TRUE(prediction) << to_string(prediction.error());
  std::vector<ByteCount> highest(prediction->rank_classes.size(), 0);
  const MemorySample* before = nullptr;
  for (const MemorySample& sample : prediction->memory_samples) {
    auto& own = highest[static_cast<std::size_t>(sample.rank_class)];
    own = std::max(own, total(sample.parts));
    if (before != nullptr && before->rank_class == sample.rank_class) {
      EXPECT_LE(before->at, sample.at);
    }
    before = &sample;
  }
  for (std::size_t i = 0; i < highest.size(); ++i) {
    EXPECT_EQ(highest[i], prediction->rank_classes[i].peak_memory);
  }
}

TEST(CriticalPath, AddsUpToTheStepTime) {
  for (const int pp : {1, 4}) {
    GptCase c;
    c.pp = pp;
    c.dp = 2;
    c.layers = 8;
    const auto prediction = predict(scenario_from(text_of(c)), source_folders());
    ASSERT_TRUE(prediction) << to_string(prediction.error());
    double sum = 0;
    for (const PathStep& step : prediction->critical_path) sum += step.time.value();
    EXPECT_NEAR(sum, prediction->step_time.value(), 1e-9 * prediction->step_time.value());
  }
}

// Receives of virtual stages are posted ahead where sends do not overlap compute.
TEST(Interleaved, WithoutOverlapOfItsTransfersDoesNotDeadlock) {
  for (const char* framework : {"megatron", "native"}) {
    GptCase c;
    c.framework = framework;
    c.pp = 4;
    c.virtual_stages = 2;
    c.layers = 8;
    c.schedule = "interleaved";
    c.extra_layout = R"(, "overlap": {"pp": false})";
    const auto blocking = predict(scenario_from(text_of(c)), source_folders());
    ASSERT_TRUE(blocking) << to_string(blocking.error());
    c.extra_layout = R"(, "overlap": {"pp": true})";
    const auto overlapped = predict(scenario_from(text_of(c)), source_folders());
    ASSERT_TRUE(overlapped) << to_string(overlapped.error());
    EXPECT_GT(blocking->step_time.value(), 0.9 * overlapped->step_time.value());
  }
}

}  // namespace
}  // namespace stepcast
