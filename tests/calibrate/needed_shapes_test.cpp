// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/needed_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calibrate/protocol/needed_grid.h"
#include "core/each.h"
#include "operation/signature.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

NeededMeasurements needed_of(const Scenario& scenario) {
  return needed(scenario, lower(scenario), RankGrid(scenario.layout));
}

// 4 layers of 512, 8 heads, vocabulary 1024, one sequence of 256 tokens at a time.
GptCase native(int tp, int pp, int dp) {
  GptCase c;
  c.tp = tp;
  c.pp = pp;
  c.dp = dp;
  c.framework = "native";
  c.attention = "flash";
  c.precision = "fp32";
  return c;
}

template <class Work>
std::vector<Work> of_kind(const NeededMeasurements& all) {
  std::vector<Work> out;
  for (const NeededKernel& kernel : all.kernels) {
    if (const auto* work = std::get_if<Work>(&kernel.operation.work)) out.push_back(*work);
  }
  return out;
}

std::vector<MemoryBound> memory_bound_ones(const NeededMeasurements& all) {
  std::vector<MemoryBound> out;
  for (const NeededKernel& kernel : all.kernels) {
    if (const auto one = memory_bound(kernel.operation.work)) out.push_back(*one);
  }
  return out;
}

std::set<std::string> signatures(const NeededMeasurements& all) {
  std::set<std::string> out;
  for (const NeededKernel& kernel : all.kernels) out.insert(signature(kernel.operation));
  return out;
}

std::vector<NeededCollective> of_group(const NeededMeasurements& all, AxisGroup group) {
  std::vector<NeededCollective> out;
  for (const NeededCollective& collective : all.collectives) {
    if (collective.group == group) out.push_back(collective);
  }
  return out;
}

// Products of a layer: qkv, attention output, up, down; and the logits: 5 forward. Each has an
// input gradient and a weight gradient. The four layers are alike: 15. Attention forward and
// backward. Norms before attention and before the head are alike, and that before the MLP also adds
// up its input: two forward, and one backward.
TEST(NeededShapes, AreThoseOfAGptOnce) {
  const NeededMeasurements all = needed_of(gpt(native(1, 1, 1)));
  EXPECT_EQ(of_kind<Gemm>(all).size(), 15u);
  EXPECT_EQ(of_kind<Attention>(all).size(), 2u);
  const auto kernels = memory_bound_ones(all);
  EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                          [](const auto& k) { return k.kind == MemoryBoundKind::kNorm; }),
            3);
  const std::set<std::string> known = signatures(all);
  EXPECT_EQ(known.size(), all.kernels.size());
  EXPECT_TRUE(known.contains("gemm forward 1x256x1536x512 fp32 fp32 bias"));
  EXPECT_TRUE(known.contains("gemm input_gradient 1x256x512x1024 fp32 fp32"));
  EXPECT_TRUE(known.contains("attention backward 1x8x8x256x256x64 causal fp32"));
  EXPECT_TRUE(all.collectives.empty());
  EXPECT_TRUE(all.sends.empty());
}

TEST(NeededShapes, ComeWithTheBlockThatHasThem) {
  const Scenario scenario = gpt(native(1, 1, 1));
  const Program program = lower(scenario);
  const auto kernels = needed(scenario, program, RankGrid(scenario.layout)).kernels;
  ASSERT_GT(kernels.size(), 10u);
  for (const NeededKernel& kernel : kernels) {
    const Block& block = program.block(kernel.block);
    for (const BufferId id : kernel.operation.reads) {
      EXPECT_TRUE(!id.valid() || id.index() < block.buffers.size()) << kernel.operation.name;
    }
    const auto is_it = [&](const Operation& other) {
      return signature(other) == signature(kernel.operation);
    };
    EXPECT_TRUE(std::any_of(block.pass(Pass::kForward).operations.begin(),
                            block.pass(Pass::kForward).operations.end(), is_it) ||
                std::any_of(block.pass(Pass::kBackward).operations.begin(),
                            block.pass(Pass::kBackward).operations.end(), is_it))
        << kernel.operation.name;
  }
}

// A recomputed forward runs only kernels that the first one ran too.
TEST(NeededShapes, AreNoMoreWithRecomputation) {
  GptCase c = native(1, 1, 1);
  const std::set<std::string> without = signatures(needed_of(gpt(c)));
  c.recompute = "full";
  EXPECT_EQ(signatures(needed_of(gpt(c))), without);
}

// 16 ranks on two nodes of 8, tensor before data before pipeline: stage 0 on node 0, stage 1 on
// node 1. A message is 256 tokens of 512 numbers of 4 bytes: 512 KiB.
class OnTwoNodes : public ::testing::Test {
 protected:
  static constexpr ByteCount kMessage = 256 * 512 * 4;
  const NeededMeasurements all_ = needed_of(gpt(native(2, 2, 4)));
};

// Forward and backward, from each of the 8 ranks of a stage.
TEST_F(OnTwoNodes, SendsCrossInBothDirections) {
  const std::vector<NeededSend> expected = {
      {{CollectiveKind::kSendReceive, kMessage, DataType::kFp32}, 0, 1, 8},
      {{CollectiveKind::kSendReceive, kMessage, DataType::kFp32}, 1, 0, 8}};
  EXPECT_EQ(all_.sends, expected);
}

// All-reduces of the activations on both nodes, and of one number per token for the loss, on the
// last stage's node alone. 8 groups of two, whose ranks wait for them.
TEST_F(OnTwoNodes, TensorGroupsLieOnEither) {
  const auto reduce = [](ByteCount bytes, int node) {
    return NeededCollective{AxisGroup::kTensor,
                            {CollectiveKind::kAllReduce, bytes, DataType::kFp32},
                            true,
                            {node, node},
                            8};
  };
  const std::vector<NeededCollective> expected = {reduce(256 * 4, 1), reduce(kMessage, 0),
                                                  reduce(kMessage, 1)};
  EXPECT_EQ(of_group(all_, AxisGroup::kTensor), expected);
}

// The groups that reduce gradients: 4 groups (2 stages, 2 tensor ranks) of 4 data ranks, each on
// one node.
TEST_F(OnTwoNodes, DataGroupsStayOnANode) {
  const auto data = of_group(all_, AxisGroup::kData);
  std::set<std::vector<int>> placements;
  for (const NeededCollective& collective : data) {
    EXPECT_EQ(collective.message.kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(collective.ranks(), 4);
    EXPECT_EQ(collective.concurrent, 4);
    EXPECT_FALSE(collective.on_compute);
    placements.insert(collective.placement);
  }
  EXPECT_EQ(placements, (std::set<std::vector<int>>{{0, 0, 0, 0}, {1, 1, 1, 1}}));
}

// The tied table, half of it on each tensor rank: 512 rows of 512 numbers of 4 bytes, between the
// first stage and the last; the norm's one number over a replica, 4 of them.
TEST_F(OnTwoNodes, EmbeddingAndModelGroupsSpanBoth) {
  const std::vector<NeededCollective> tied = {
      {AxisGroup::kEmbedding,
       {CollectiveKind::kAllReduce, 512 * 512 * 4, DataType::kFp32},
       true,
       {0, 1},
       8}};
  EXPECT_EQ(of_group(all_, AxisGroup::kEmbedding), tied);
  const std::vector<NeededCollective> norm = {
      {AxisGroup::kModel, {CollectiveKind::kAllReduce, 4, DataType::kFp32}, true, {0, 0, 1, 1}, 4}};
  EXPECT_EQ(of_group(all_, AxisGroup::kModel), norm);
}

TEST(NeededShapes, OfTwoScenariosAddUp) {
  GptCase c = native(1, 1, 2);
  NeededMeasurements all = needed_of(gpt(c));
  const NeededMeasurements same = all;
  all.add(same);
  EXPECT_EQ(signatures(all).size(), all.kernels.size());
  EXPECT_EQ(all.collectives, same.collectives);
  c.hidden = 1024;
  const NeededMeasurements wide = needed_of(gpt(c));
  all.add(wide);
  std::set<std::string> expected = signatures(same);
  expected.merge(signatures(wide));
  EXPECT_EQ(signatures(all), expected);
  EXPECT_EQ(all.kernels.size(), expected.size());
}

TEST(NeededGrid, HasAsManyMoreKernelsAsAskedAndNoneTwice) {
  const NeededMeasurements all = needed_of(gpt(native(1, 1, 1)));
  GridOptions options;
  options.gemms = 6;
  options.attentions = 3;
  options.elementwises = 1;
  const NeededMeasurements extra = grid(all, options);
  EXPECT_EQ(of_kind<Gemm>(extra).size(), 3u * 6);  // three roles
  EXPECT_EQ(of_kind<Attention>(extra).size(), 2u * 3);
  EXPECT_LE(memory_bound_ones(extra).size(), memory_bound_ones(all).size());
  EXPECT_GE(memory_bound_ones(extra).size(), memory_bound_ones(all).size() / 2);
  std::set<std::string> seen = signatures(all);
  for (const NeededKernel& kernel : extra.kernels) {
    EXPECT_TRUE(seen.insert(signature(kernel.operation)).second) << signature(kernel.operation);
    EXPECT_FALSE(kernel.block.valid());
  }
  EXPECT_EQ(signatures(grid(all, options)), signatures(extra));
}

TEST(NeededGrid, KeepsToWhatKernelsCanRun) {
  GptCase c = native(1, 1, 1);
  c.attention = "unfused";
  c.micro_batch = 2;
  const NeededMeasurements extra = grid(needed_of(gpt(c)));
  for (const MemoryBound& kernel : each_of(memory_bound_ones(extra))) {
    EXPECT_EQ(kernel.elements % std::max<std::int64_t>(1, kernel.width), 0);
    EXPECT_GT(kernel.bytes, 0);
  }
  // The largest product is of the logits, 512 x 1024 x 512, or of a batch of heads.
  for (const Gemm& gemm : each_of(of_kind<Gemm>(extra))) {
    EXPECT_LE(gemm.batch * gemm.m * gemm.n * gemm.k, 2 * 512 * 2048 * 512);
  }
}

// Needed: 512 KiB. 1, 4, 16, 64, 256 KiB, 1 MiB and 2 MiB: the largest four times the needed.
TEST_F(OnTwoNodes, TheGridHasMessagesOfOtherSizes) {
  const NeededMeasurements extra = grid(all_);
  std::vector<ByteCount> sizes;
  for (const NeededSend& send : extra.sends) {
    if (send.from == 0) sizes.push_back(send.message.bytes);
    EXPECT_EQ(send.concurrent, 8);
  }
  const std::vector<ByteCount> expected = {1 << 10,   4 << 10, 16 << 10, 64 << 10,
                                           256 << 10, 1 << 20, 2 << 20};
  EXPECT_EQ(sizes, expected);
}

// Whole elements of 4 bytes for each of 3 members: 1024 becomes 1032.
TEST(NeededGrid, RoundsMessagesUpToTheMembers) {
  NeededMeasurements all;
  all.collectives.push_back({AxisGroup::kData,
                             {CollectiveKind::kReduceScatter, 1200, DataType::kFp32},
                             false,
                             {0, 0, 1},
                             1});
  std::vector<ByteCount> sizes;
  for (const NeededCollective& collective : grid(all).collectives) {
    sizes.push_back(collective.message.bytes);
    EXPECT_EQ(collective.placement, (std::vector<int>{0, 0, 1}));
  }
  EXPECT_EQ(sizes, (std::vector<ByteCount>{1032, 4104, 4800}));
}

}  // namespace
}  // namespace stepcast
