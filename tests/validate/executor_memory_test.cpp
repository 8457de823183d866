// SPDX-License-Identifier: Apache-2.0
#include "validate/executor_memory.h"

#include <gtest/gtest.h>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr ByteCount kMiB = 1 << 20;

Scenario scenario() {
  testing::GptCase c;  // 8 heads of 64 elements, 256 tokens
  c.framework = "native";
  c.attention = "flash";
  c.pp = 2;
  return testing::gpt(c);
}

TEST(ExecutorMemory, IsThePoolOfTensorsAndTheWorkspaceOfLibraries) {
  const Scenario two_stages = scenario();
  Prediction forecast = predict(two_stages, testing::source_folders()).value();
  const Prediction before = forecast;
  count_executor_memory(two_stages, AttentionBy::kSameBits, forecast);
  // cuBLASLt's 32 MiB, and 2 bytes for each of 8 * 256^2 scores.
  const ByteCount workspace = 32 * kMiB + kMiB;
  ByteCount most = 0;
  for (std::size_t i = 0; i < forecast.rank_classes.size(); ++i) {
    const RankClass& one = forecast.rank_classes[i];
    EXPECT_EQ(one.framework_bytes, before.rank_classes[i].framework_bytes + workspace);
    EXPECT_GE(one.reserved_bytes, one.peak_memory);
    EXPECT_LT(one.reserved_bytes, one.peak_memory + 2 * kMiB);
    most = std::max(most, one.reserved_bytes + one.framework_bytes);
  }
  EXPECT_EQ(forecast.peak_device, most);
  EXPECT_EQ(forecast.peak_memory, before.peak_memory);
}

TEST(ExecutorMemory, DecidesWhatFits) {
  const Scenario two_stages = scenario();
  const Prediction before = predict(two_stages, testing::source_folders()).value();
  Prediction needed = before;
  count_executor_memory(two_stages, AttentionBy::kOwnKernels, needed);
  for (const bool enough : {true, false}) {
    Prediction forecast = before;
    forecast.device_memory = needed.peak_device - (enough ? 0 : 1);
    count_executor_memory(two_stages, AttentionBy::kOwnKernels, forecast);
    EXPECT_EQ(forecast.fits, enough);
  }
}

}  // namespace
}  // namespace stepcast
