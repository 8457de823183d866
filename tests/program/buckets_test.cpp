// SPDX-License-Identifier: Apache-2.0
#include "program/buckets.h"

#include <gtest/gtest.h>

#include "program/program.h"
#include "program/role_builder.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

// Megatron reduces the table apart on both stages, so that the same rank owns a row on each.
TEST(Buckets, ATableThatBothEndsOfAPipelineHoldIsARangeOfItsOwn) {
  GptCase c;
  c.pp = 2;
  c.dp = 2;
  c.zero = 1;
  c.vocab = 1031;
  const Scenario scenario = gpt(c);
  Program program = lower(scenario);
  ASSERT_EQ(program.roles.size(), 2u);
  for (Role& role : program.roles) {
    const RoleBuilder builder(scenario, program, role);
    const std::int64_t table = builder.shape().vocab * builder.shape().hidden;
    for (const bool by_chunk : {false, true}) {
      std::int64_t elements = 0, tables = 0;
      for (const Bucket& bucket : cut_buckets(builder, by_chunk, 0)) {
        for (const ElementRange& range : bucket.ranges) {
          elements += range.size();
          tables += range.size() == table ? 1 : 0;
        }
      }
      EXPECT_EQ(elements, role.parameters) << role.stage;
      EXPECT_EQ(tables, 1) << role.stage;
    }
  }
}

// Megatron closes a bucket once it holds bucket_size elements (param_and_grad_buffer.py: `>=`), so
// a size that two blocks fill exactly ends with them, and one element more takes in a third.
TEST(Buckets, ABucketThatIsExactlyFullIsClosed) {
  GptCase c;
  c.dp = 2;
  const Scenario scenario = gpt(c);
  Program program = lower(scenario);
  ASSERT_EQ(program.roles.size(), 1u);
  const RoleBuilder builder(scenario, program, program.roles.front());
  const std::int32_t blocks = builder.blocks(0);
  ASSERT_GE(blocks, 4);
  const std::int64_t two = builder.elements(0, blocks - 2, blocks);
  ASSERT_GT(builder.elements(0, blocks - 3, blocks), two);
  EXPECT_EQ(cut_buckets(builder, true, two).front().block_begin, blocks - 2);
  EXPECT_EQ(cut_buckets(builder, true, two + 1).front().block_begin, blocks - 3);
}

}  // namespace
}  // namespace stepcast
