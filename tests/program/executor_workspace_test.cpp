// SPDX-License-Identifier: Apache-2.0
#include "program/executor_workspace.h"

#include <gtest/gtest.h>

#include "operation/attention_parts.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr ByteCount kMiB = 1 << 20;

// Llama-3.2-1b has it so: 2 sequences of 4096 tokens, 32 heads of 64 elements, 8 of keys.
Attention attention(bool backward, DataType type = DataType::kBf16) {
  return {backward, 2, 32, 8, 4096, 4096, 64, true, type};
}

TEST(ExecutorWorkspace, OfAttentionIsThatOfCudnnBackward) {
  // 2 * 32 * 4096^2 scores of 2 bytes, and 2 * 32 * 4096 * 64 elements of 4 bytes: cuDNN 9.19 asks
  // for 2,214,592,768 bytes, 256 more.
  EXPECT_EQ(attention_workspace(attention(true), AttentionBy::kSameBits), 2214592512);
  EXPECT_EQ(attention_workspace(attention(true), AttentionBy::kAtomics), 2 * 64 * kMiB);
  EXPECT_EQ(attention_workspace(attention(false), AttentionBy::kSameBits), 0);
  EXPECT_EQ(attention_workspace(attention(true), AttentionBy::kOwnKernels), 0);  // 1024 blocks
  EXPECT_EQ(attention_workspace(attention(true, DataType::kFp32), AttentionBy::kSameBits), 0);
  Attention alone = attention(true);
  alone.kv_heads = alone.heads;  // each query head has keys of its own
  EXPECT_EQ(attention_workspace(alone, AttentionBy::kSameBits), 2048 * kMiB);
}

// 8192 tokens make 128 blocks for one head of keys: with 5 parts they are more than 528.
TEST(ExecutorWorkspace, OfOwnAttentionIsThatOfItsParts) {
  const Attention one{true, 1, 16, 1, 8192, 8192, 128, true, DataType::kBf16};
  EXPECT_EQ(attention_workspace(one, AttentionBy::kOwnKernels), 5 * 2 * 4 * 8192 * 128);
  Attention few = one;
  few.heads = 4;  // one part each
  EXPECT_EQ(attention_workspace(few, AttentionBy::kOwnKernels), 4 * 2 * 4 * 8192 * 128);
  few.heads = 1;
  EXPECT_EQ(attention_workspace(few, AttentionBy::kOwnKernels), 0);
}

TEST(ExecutorWorkspace, OfARankIsThatOfItsLargestCall) {
  testing::GptCase c;  // 8 heads of 64 elements, 256 tokens
  c.framework = "native";
  c.attention = "flash";
  const Program program = lower(testing::gpt(c));
  const auto of = [&](AttentionBy by) {
    return executor_workspace(program, program.roles.front(), by);
  };
  EXPECT_EQ(of(AttentionBy::kSameBits), 33 * kMiB);  // 2 * 8 * 256^2
  EXPECT_EQ(of(AttentionBy::kAtomics), 32 * kMiB + 4 * 8 * 256 * 64);
  EXPECT_EQ(of(AttentionBy::kOwnKernels), 32 * kMiB);
}

}  // namespace
}  // namespace stepcast
