// SPDX-License-Identifier: Apache-2.0
#include "memory/states.h"

#include <gtest/gtest.h>

#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

double gigabytes(int zero, int ranks, double parameters) {
  GptCase c;
  c.framework = "deepspeed";
  c.dp = ranks;
  c.global_batch = ranks;
  c.zero = zero;
  return static_cast<double>(state_bytes(gpt(c), static_cast<std::int64_t>(parameters)).total()) /
         1e9;
}

// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64 ranks.
// 16 P; 4 P + 12 P/N; 2 P + 14 P/N; 16 P/N.
TEST(ZeroStates, OfSevenAndAHalfBillionOn64RanksAreThePublishedOnes) {
  EXPECT_NEAR(gigabytes(0, 64, 7.5e9), 120, 0.05);
  EXPECT_NEAR(gigabytes(1, 64, 7.5e9), 31.4, 0.05);
  EXPECT_NEAR(gigabytes(2, 64, 7.5e9), 16.6, 0.05);
  EXPECT_NEAR(gigabytes(3, 64, 7.5e9), 1.9, 0.05);
}

TEST(States, OfMegatronAre18BytesAndShardedSixPlusTwelveOverN) {
  GptCase c;
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 18 * 1000);
  c.dp = 4;
  c.zero = 1;
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (6 + 12 / 4) * 1000);
}

// Moments of 2 bytes each beside a master copy of 4.
TEST(States, OfBf16MomentsAreSixPlusEightOverN) {
  GptCase c;
  c.extra_training = R"(, "moments_precision": "bf16")";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (6 + 8) * 1000);
  c.dp = 4;
  c.zero = 1;
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (6 + 8 / 4) * 1000);
}

// Autograd's gradients and PyTorch's moments are of the parameter's type.
TEST(States, OfParametersWithoutAnFp32CopyAreEightBytes) {
  GptCase c;
  c.framework = "fsdp";
  c.zero = 2;
  c.extra_training = R"(, "master_precision": "bf16")";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (2 + 2 + 2 + 2) * 1000);
  c.extra_training += R"(, "moments_precision": "fp32")";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (2 + 2 + 4 + 4) * 1000);
  c.extra_training = "";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 16 * 1000);
}

TEST(States, OfFp32Are16Bytes) {
  for (const char* framework : {"megatron", "deepspeed", "native"}) {
    GptCase c;
    c.framework = framework;
    c.precision = "fp32";
    EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 16 * 1000) << framework;
  }
}

TEST(States, WithFp32GradientsTakeTwoBytesMore) {
  GptCase c;
  c.framework = "native";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 16 * 1000);
  c.extra_training = R"(, "grad_precision": "fp32")";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), 18 * 1000);
}

TEST(States, OfZero2InFp32KeepWholeParameters) {
  GptCase c;
  c.framework = "deepspeed";
  c.precision = "fp32";
  c.zero = 2;
  c.dp = 4;
  EXPECT_EQ(state_bytes(gpt(c), 1000).parameters, 4 * 1000);
}

// bf16_optimizer.py: bf16 gradients, the fp32 ones that they are added to, and shards of the rest.
TEST(States, OfDeepSpeedsBf16OptimizerHoldGradientsTwice) {
  GptCase c;
  c.framework = "deepspeed";
  c.zero = 1;
  c.dp = 4;
  c.extra_training = R"(, "grad_precision": "fp32")";
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (2 + 2 + 4 + 12 / 4) * 1000);
  c.precision = "fp16";  // fp16 adds them up in place
  EXPECT_EQ(state_bytes(gpt(c), 1000).total(), (2 + 4 + 12 / 4) * 1000);
}

// stage_1_and_2.py: a flat shard in 16 bit, then in fp32; fused_optimizer.py: every gradient in
// fp32, then the flat one.
TEST(UpdateCopies, OfDeepSpeedAreOfTheShard) {
  GptCase c;
  c.framework = "deepspeed";
  EXPECT_EQ(update_copy_bytes(gpt(c), 1000), (4 + 4) * 1000);
  c.dp = 4;
  for (const int zero : {1, 2}) {
    c.zero = zero;
    EXPECT_EQ(update_copy_bytes(gpt(c), 1000), (2 + 4) * 1000 / 4) << zero;
  }
  c.precision = "fp32";
  EXPECT_EQ(update_copy_bytes(gpt(c), 1000), 4 * 1000 / 4);
  c.framework = "megatron";
  c.zero = 1;
  EXPECT_EQ(update_copy_bytes(gpt(c), 1000), 0);
}

TEST(States, OfFsdpAreShardedFp32) {
  GptCase c;
  c.framework = "fsdp";
  c.dp = 8;
  c.zero = 3;
  EXPECT_EQ(state_bytes(gpt(c), 8000).total(), 16 * 1000);
}

}  // namespace
}  // namespace stepcast
