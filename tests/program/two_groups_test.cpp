// SPDX-License-Identifier: Apache-2.0
// A block with parameters of two groups: dense ones, which dp x cp holds alike, and experts, which
// fewer ranks do. No model lowers to one yet, so the block is made by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "memory/states.h"
#include "program/block_builder.h"
#include "program/buckets.h"
#include "program/flat_stretches.h"
#include "program/optimizer.h"
#include "program/step.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

constexpr std::int64_t kDense = 64 * 16 + 16, kExperts = 128 * 16;

class TwoGroups : public ::testing::Test {
 protected:
  // Four data ranks, in pairs that hold the same experts.
  TwoGroups() {
    testing::GptCase c;
    c.dp = 4;
    c.zero = 1;
    c.global_batch = 4;
    c.tied = false;  // the blocks have no table
    scenario_ = testing::gpt(c);
    scenario_.layout.ep = 2;
    scenario_.layout.overlap.grad_reduce = true;
    scenario_.rules.bucket_elements = kDense + kExperts;
    program_.blocks = {block(true), block(false)};
    role_.stage = 0;
    role_.chunks = {{0, 0, {BlockId(0), BlockId(1), BlockId(0)}}};
    place_parameters(program_, false, role_);
  }

  Block block(bool has_experts) const {
    Block out;
    const Shape shape(scenario_);
    BlockBuilder builder(scenario_.rules, shape, GradientMode::kFused, out);
    builder.parameter({"up", 64, 16});
    if (has_experts) {
      Parameter experts{"experts", 128, 16};
      experts.replicas = AxisGroup::kExpertData;
      builder.parameter(experts);
    }
    builder.parameter({"bias", 16, 1});
    return out;
  }

  Scenario scenario_;
  Program program_;
  Role role_;
};

TEST_F(TwoGroups, LieInOneStretchEach) {
  EXPECT_EQ(program_.blocks[0].parameters.total(), kDense + kExperts);
  ASSERT_EQ(role_.stretches.size(), 2U);
  EXPECT_EQ(role_.stretches[0].group, AxisGroup::kData);
  EXPECT_EQ(role_.stretches[0].range.size(), 3 * kDense);
  EXPECT_EQ(role_.stretches[1].group, AxisGroup::kExpertData);
  EXPECT_EQ(role_.stretches[1].range.size(), 2 * kExperts);
  // Every weight has a place of its own, inside the stretch of its group.
  std::vector<ElementRange> places;
  for (std::size_t b = 0; b < 3; ++b) {
    const Block& own = program_.block(role_.chunks[0].blocks[b]);
    for (std::size_t w = 0; w < own.weights.size(); ++w) {
      places.push_back(weight_range(program_, role_, 0, b, w));
      EXPECT_EQ(places.back().size(), own.weights[w].elements());
      EXPECT_EQ(role_.group_of(places.back()), own.weights[w].replicas);
    }
  }
  std::ranges::sort(places, {}, &ElementRange::begin);
  std::int64_t end = 0;
  for (const ElementRange& place : places) {
    EXPECT_EQ(place.begin, end);
    end = place.end;
  }
  EXPECT_EQ(end, role_.parameters);
}

TEST_F(TwoGroups, ARangeOfABucketBelongsToOne) {
  const RoleBuilder builder(scenario_, program_, role_);
  for (const bool by_chunk : {false, true}) {
    std::map<AxisGroup, std::int64_t> sum;
    for (const Bucket& bucket : cut_buckets(builder, by_chunk, kDense + kExperts)) {
      for (const ElementRange& range : bucket.ranges) sum[role_.group_of(range)] += range.size();
    }
    EXPECT_EQ(sum, (std::map<AxisGroup, std::int64_t>{{AxisGroup::kData, 3 * kDense},
                                                      {AxisGroup::kExpertData, 2 * kExperts}}));
  }
}

// 6 bytes per parameter everywhere and 12 over as many ranks as hold the same parameter.
TEST_F(TwoGroups, AreShardedAmongTheirOwnRanks) {
  EXPECT_EQ(shard_ranks(scenario_), 4);
  EXPECT_EQ(shard_ranks(scenario_, AxisGroup::kExpertData), 2);
  EXPECT_EQ(state_bytes(scenario_, 1000, AxisGroup::kExpertData).total(), (6 + 12 / 2) * 1000);
  const Block update = lower_update(scenario_, role_);
  const auto& clip = std::get<ClipGradients>(update.pass(Pass::kForward).operations.front().work);
  EXPECT_EQ(clip.size.elements, 3 * kDense / 4 + 2 * kExperts / 2);
}

TEST_F(TwoGroups, AreReducedAndGatheredEachOverItsOwn) {
  RoleBuilder builder(scenario_, program_, role_);
  program_.blocks.push_back(lower_zero_gradients(scenario_, role_));
  program_.blocks.push_back(lower_gradient_norm(scenario_, role_));
  program_.blocks.push_back(lower_update(scenario_, role_));
  const StageOrder order = {{Pass::kForward, 0, 0}, {Pass::kBackward, 0, 0}};
  arrange_replicated_step(builder, order, {BlockId(2), BlockId(3), BlockId(4), {}, {}});
  std::map<std::pair<CollectiveKind, AxisGroup>, ByteCount> sum;
  for (const Instruction& what : role_.instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call != nullptr) sum[{call->message.kind, call->group}] += call->elements.size();
  }
  std::erase_if(sum, [](const auto& entry) { return entry.second == 0; });  // the norm

  using enum CollectiveKind;
  const std::map<std::pair<CollectiveKind, AxisGroup>, ByteCount> expected = {
      {{kAllGather, AxisGroup::kData}, 3 * kDense},
      {{kAllGather, AxisGroup::kExpertData}, 2 * kExperts},
      {{kReduceScatter, AxisGroup::kData}, 3 * kDense},
      {{kReduceScatter, AxisGroup::kExpertData}, 2 * kExperts}};
  EXPECT_EQ(sum, expected);
}

// ZeRO-2 holds whole gradients from the backward of their bucket until they are reduced, each
// group's in a range of its own.
TEST_F(TwoGroups, HoldTheirGradientsApart) {
  for (const std::int64_t experts : {2, 4}) {
    SCOPED_TRACE(experts);
    scenario_.layout.zero = 2;
    scenario_.layout.ep = experts;
    role_.instructions.clear();
    program_.blocks.resize(2);
    program_.blocks.push_back(lower_zero_gradients(scenario_, role_));
    RoleBuilder builder(scenario_, program_, role_);
    const StageOrder order = {{Pass::kForward, 0, 0}, {Pass::kBackward, 0, 0}};
    arrange_replicated_step(builder, order, {BlockId(2), BlockId(2), BlockId(2), {}, {}});
    std::map<AxisGroup, std::int64_t> held, freed;
    constexpr auto kBuffers = static_cast<std::size_t>(MemoryCategory::kBuffers);
    ByteCount living = 0;
    for (const Instruction& what : role_.instructions) {
      for (const ElementRange& range : what.windows.get().holds_gradients) {
        held[role_.group_of(range)] += range.size();
      }
      for (const ElementRange& range : what.windows.get().frees_gradients) {
        freed[role_.group_of(range)] += range.size();
      }
      living += what.birth[kBuffers] - what.death[kBuffers];
    }
    std::map<AxisGroup, std::int64_t> expected = {{AxisGroup::kData, 3 * kDense}};
    if (experts == 2) expected[AxisGroup::kExpertData] = 2 * kExperts;  // of 4 each rank is alone
    EXPECT_EQ(held, expected);
    EXPECT_EQ(freed, expected);
    EXPECT_EQ(living, 0);
  }
}

// With as many expert ranks as there are ranks each holds experts of its own.
TEST_F(TwoGroups, NothingIsReducedWhereARankIsAlone) {
  scenario_.layout.ep = 4;
  RoleBuilder builder(scenario_, program_, role_);
  program_.blocks.push_back(lower_zero_gradients(scenario_, role_));
  const StageOrder order = {{Pass::kForward, 0, 0}, {Pass::kBackward, 0, 0}};
  arrange_replicated_step(builder, order, {BlockId(2), BlockId(2), BlockId(2), {}, {}});
  for (const Instruction& what : role_.instructions) {
    const auto* call = what.as<CollectiveCall>();
    EXPECT_FALSE(call != nullptr && call->group == AxisGroup::kExpertData) << what.name;
  }
  EXPECT_EQ(shard_ranks(scenario_, AxisGroup::kExpertData), 1);
}

// One data rank of eight tensor ranks, over which the experts lie twice: four ranks hold the same
// experts, and none the same dense weights. ZeRO-2 frees the gradients that it reduces, those of
// experts, and holds no window of others; lower() checks that what is held is freed.
TEST(TwoGroupsOfAModel, KeepATiedTableThatNoOtherRankHolds) {
  const Scenario scenario = testing::scenario_from(R"({"stepcast": 1,
      "model": {"heads": 8, "hidden": 4096, "layers": 4, "vocab": 64, "tied_embeddings": true,
                "moe": {"experts": 4, "ffn": 128, "top_k": 1}},
      "cluster": "dgx-h800x1", "training": {"global_batch": 1},
      "layout": {"tp": 8, "ep": 2, "zero": 2}})");
  ASSERT_EQ(size_of(AxisGroup::kData, scenario.layout), 1);
  ASSERT_EQ(size_of(AxisGroup::kExpertData, scenario.layout), 4);
  const Program program = lower(scenario);
  const Role& role = program.roles.front();
  int windows = 0;
  for (const Instruction& what : role.instructions) {
    for (const ElementRange& range : what.windows.get().holds_gradients) {
      ++windows;
      EXPECT_EQ(role.group_of(range), AxisGroup::kExpertData);
    }
  }
  EXPECT_GT(windows, 0);
}

}  // namespace
}  // namespace stepcast
