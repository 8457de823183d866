// SPDX-License-Identifier: Apache-2.0
// Memory that PyTorch's allocator still holds for collectives when it is fullest.
#include <gtest/gtest.h>

#include <string>

#include "memory/device_footprint.h"
#include "predict/memory_replay.h"
#include "predict/prediction.h"
#include "program/decoder_layer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

// Rows long enough that the host is ahead of the device from the second micro-batch on.
GptCase wide() {
  GptCase c;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 4096;
  c.attention = "flash";
  c.tp = 8;
  c.sequence_parallel = true;
  return c;
}

ByteCount lent_forward(const GptCase& c) {
  return lower_decoder_layer(gpt(c), RecomputeMode::kNone).pass(Pass::kForward).memory.lent;
}

// The products behind attention and behind the MLP hand 2 sbh bytes each to a reduce-scatter, and
// nobody reads them again.
TEST(LentMemory, OfALayerAreTheSumsThatTensorRanksScatter) {
  const GptCase c = wide();
  EXPECT_EQ(lent_forward(c), 2 * ByteCount{2} * c.sequence * c.hidden);
}

TEST(LentMemory, OfOneRankIsNothing) {
  GptCase c = wide();
  c.tp = 1;
  c.sequence_parallel = false;
  EXPECT_EQ(lent_forward(c), 0);
}

RankClass forecast_with(const GptCase& c, bool records) {
  GptCase stated = c;
  stated.extra_training = std::string(R"(, "record_streams": )") + (records ? "true" : "false");
  const auto forecast = predict(gpt(stated), testing::source_folders(), {});
  EXPECT_TRUE(forecast) << to_string(forecast.error());
  return forecast ? forecast->rank_classes.front() : RankClass{};
}

TEST(LentMemory, IsReservedBesideTensorsWhereStreamsAreRecorded) {
  const GptCase c = wide();
  const RankClass with = forecast_with(c, true), without = forecast_with(c, false);
  EXPECT_EQ(with.peak_memory, without.peak_memory);
  const Scenario scenario = gpt(c);
  const Program program = lower(scenario);
  const MemoryPeak peak = replay_memory(program, program.roles.front());
  // Every layer's, and the embedding's own sum, which is scattered too.
  EXPECT_EQ(peak.lent, (2 * c.layers + 1) * ByteCount{2} * c.sequence * c.hidden);
  EXPECT_EQ(with.reserved_bytes, reserved_bytes(scenario, with.peak_memory + peak.lent));
  EXPECT_EQ(without.reserved_bytes, reserved_bytes(scenario, with.peak_memory));
}

// The device of a small model waits for the host, so that a collective has mostly ended before the
// host goes on.
TEST(LentMemory, IsLessWhereTheDeviceWaitsForTheHost) {
  GptCase c = wide();
  c.hidden = 512;
  c.heads = 8;
  c.sequence = 256;
  const ByteCount lent = (2 * c.layers + 1) * ByteCount{2} * c.sequence * c.hidden;
  EXPECT_LT(forecast_with(c, true).reserved_bytes,
            reserved_bytes(gpt(c), forecast_with(c, false).peak_memory + lent));
}

TEST(LentMemory, FollowsTheReleaseOfPyTorchThatTheMonthHad) {
  const auto records = [](const char* framework, const std::string& month) {
    GptCase c;
    c.framework = framework;
    if (c.framework == "fsdp") c.zero = 3;
    if (!month.empty()) c.extra_training = R"(, "release": ")" + month + R"(")";
    return gpt(c).rules.records_streams;
  };
  for (const char* framework : {"megatron", "fsdp", "deepspeed"}) {
    EXPECT_TRUE(records(framework, "2025-07")) << framework;
    EXPECT_FALSE(records(framework, "2025-08")) << framework;
    EXPECT_FALSE(records(framework, "")) << framework;
  }
  EXPECT_FALSE(records("native", "2025-07"));  // it has an allocator of its own
}

}  // namespace
}  // namespace stepcast
