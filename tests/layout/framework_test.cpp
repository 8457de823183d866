// SPDX-License-Identifier: Apache-2.0
// Bytes of state per parameter follow from the resolved types: parameter + gradient + master +
// Adam.
#include "layout/framework.h"

#include <gtest/gtest.h>

#include "layout/scenario_input.h"

namespace stepcast {
namespace {

Scenario resolved(Framework framework, DataType precision, LayoutInput layout = {},
                  std::int64_t gpus = 64) {
  TrainingInput training;
  training.global_batch = 1024;
  training.sequence_length = 2048;
  training.framework = framework;
  training.precision = precision;
  Cluster cluster;
  cluster.spec.gpus = gpus;
  return resolve(Model{}, cluster, training, layout);
}

std::int64_t state_bytes(const Scenario& s) {
  const std::int64_t parameter = s.rules.bf16_parameters ? 2 : 4;
  const std::int64_t master = s.rules.keeps_master_weights ? 4 : 0;
  return parameter + size_of(s.training.grad_precision) + master + 8;
}

TEST(FrameworkState, MegatronKeepsEighteenBytesPerParameter) {
  EXPECT_EQ(state_bytes(resolved(Framework::kMegatron, DataType::kBf16)), 18);  // 2 + 4 + 4 + 8
  EXPECT_EQ(state_bytes(resolved(Framework::kMegatron, DataType::kFp16)), 18);
}

TEST(FrameworkState, TheOthersKeepSixteen) {
  EXPECT_EQ(state_bytes(resolved(Framework::kDeepSpeed, DataType::kFp16)), 16);  // 2 + 2 + 4 + 8
  EXPECT_EQ(state_bytes(resolved(Framework::kNative, DataType::kBf16)), 16);
  EXPECT_EQ(state_bytes(resolved(Framework::kFsdp, DataType::kBf16)), 16);  // 4 + 4 + 0 + 8
}

TEST(FrameworkState, Fp32KeepsSixteenEverywhere) {
  for (const Framework framework :
       {Framework::kMegatron, Framework::kFsdp, Framework::kDeepSpeed, Framework::kNative}) {
    EXPECT_EQ(state_bytes(resolved(framework, DataType::kFp32)), 16) << name_of(framework);
  }
}

TEST(FrameworkState, GradientsAreReducedAsTheyAreStored) {
  EXPECT_EQ(resolved(Framework::kMegatron, DataType::kBf16).training.reduce_precision,
            DataType::kFp32);
  EXPECT_EQ(resolved(Framework::kDeepSpeed, DataType::kFp16).training.reduce_precision,
            DataType::kFp16);
  EXPECT_EQ(resolved(Framework::kFsdp, DataType::kBf16).training.reduce_precision, DataType::kFp32);
}

// Megatron: one bucket without overlap; with it max(40e6, 1e6 * data ranks) elements.
TEST(FrameworkBuckets, MegatronsGrowWithTheDataGroup) {
  EXPECT_EQ(resolved(Framework::kMegatron, DataType::kBf16).rules.bucket_elements, 0);
  LayoutInput overlapped;
  overlapped.overlap.grad_reduce = true;
  overlapped.overlap.param_gather = true;
  const auto rules = [&](std::int64_t gpus) {
    return resolved(Framework::kMegatron, DataType::kBf16, overlapped, gpus).rules;
  };
  EXPECT_EQ(rules(8).bucket_elements, 40'000'000);
  EXPECT_EQ(rules(64).bucket_elements, 64'000'000);
  EXPECT_EQ(rules(64).gather_bucket_elements, 64'000'000);
}

TEST(FrameworkBuckets, DeepSpeedsAndPlainDataParallelismsAreFixed) {
  EXPECT_EQ(resolved(Framework::kDeepSpeed, DataType::kFp16).rules.bucket_elements, 500'000'000);
  // 25 MiB of 2-byte gradients.
  EXPECT_EQ(resolved(Framework::kNative, DataType::kBf16).rules.bucket_elements, 13'107'200);
}

TEST(FrameworkOverlap, FollowsTheFlagsOfEachFramework) {
  const Overlap megatron = resolved(Framework::kMegatron, DataType::kBf16).layout.overlap;
  EXPECT_FALSE(megatron.grad_reduce || megatron.param_gather || megatron.tp || megatron.pp);
  const Overlap fsdp = resolved(Framework::kFsdp, DataType::kBf16).layout.overlap;
  EXPECT_TRUE(fsdp.grad_reduce && fsdp.param_gather);
  LayoutInput zero_3;
  zero_3.zero = 3;
  EXPECT_TRUE(resolved(Framework::kDeepSpeed, DataType::kBf16, zero_3).layout.overlap.grad_reduce);
  EXPECT_FALSE(resolved(Framework::kDeepSpeed, DataType::kBf16).layout.overlap.grad_reduce);
}

// Megatron's batched transfers end in a device synchronise, the interleaved schedule's overlap;
// DeepSpeed reads what it receives on the host.
TEST(FrameworkPipeline, TransfersStopTheHostUnlessOverlapped) {
  LayoutInput layout;
  layout.pp = 4;
  EXPECT_TRUE(resolved(Framework::kMegatron, DataType::kBf16, layout).rules.host_sync_after_p2p);
  EXPECT_TRUE(resolved(Framework::kDeepSpeed, DataType::kBf16, layout).rules.host_sync_after_p2p);
  layout.schedule = ScheduleKind::kInterleaved;
  const Scenario interleaved = resolved(Framework::kMegatron, DataType::kBf16, layout);
  EXPECT_TRUE(interleaved.layout.overlap.pp);
  EXPECT_FALSE(interleaved.rules.host_sync_after_p2p);
}

TEST(FrameworkPipeline, TheActivationIsScatteredWhereAllTensorRanksHoldIt) {
  LayoutInput layout;
  layout.pp = 4;
  EXPECT_FALSE(resolved(Framework::kMegatron, DataType::kBf16, layout).rules.scatter_gather_p2p);
  layout.tp = 8;
  EXPECT_FALSE(resolved(Framework::kMegatron, DataType::kBf16, layout).rules.scatter_gather_p2p);
  layout.sequence_parallel = false;
  EXPECT_TRUE(resolved(Framework::kMegatron, DataType::kBf16, layout).rules.scatter_gather_p2p);
}

}  // namespace
}  // namespace stepcast
