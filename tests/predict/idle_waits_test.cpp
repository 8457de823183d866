// SPDX-License-Identifier: Apache-2.0
// A collective of one member does nothing, and whoever waits for it waits for what it would have
// followed.
#include <gtest/gtest.h>

#include <algorithm>

#include "least_step.h"
#include "predict/prediction.h"
#include "program/awaited.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::scenario_from;
using testing::source_folders;

// Every list of instructions: one that computes, and a stream of collectives.
Instruction computes() {
  return {Stream::kCompute, "run", RunBlock{BlockId(0), BlockKind::kLayer}};
}
Instruction sums(Stream stream, AxisGroup group) {
  return {stream, "sum", CollectiveCall{Purpose::kGradients, group, {{}, 8, DataType::kFp32}}};
}
Instruction behind(Instruction what, std::initializer_list<InstructionIndex> waits) {
  for (const InstructionIndex wait : waits) what.wait_for(wait);
  return what;
}

std::vector<InstructionIndex> list_of(const Waits& waits) {
  std::vector<InstructionIndex> out(waits.begin(), waits.end());
  std::ranges::sort(out);
  return out;
}
using List = std::vector<InstructionIndex>;

// Two ranks, all of them in the data group, each alone in the tensor group.
TEST(Awaited, AnIdleCollectiveStandsForWhatItFollows) {
  Layout layout;
  layout.dp = 2;
  const RankGrid grid(layout);
  const AxisGroup real = AxisGroup::kData, idle = AxisGroup::kTensor;
  Role role;
  role.instructions = {
      computes(),                                         // 0
      behind(sums(Stream::kReduce, real), {0}),           // 1
      computes(),                                         // 2
      behind(sums(Stream::kReduce, idle), {2}),           // 3
      behind(sums(Stream::kReduceCopies, real), {3}),     // 4: behind 2, and 1 on the stream of 3
      behind(sums(Stream::kReduce, real), {}),            // 5: on the stream of 3, so behind 2
      behind(sums(Stream::kReduce, idle), {}),            // 6
      behind(sums(Stream::kGather, idle), {6}),           // 7
      behind(computes(), {7}),                            // 8: behind 5, which 6 follows
      behind(sums(Stream::kReduceCopies, real), {5, 8}),  // 9: as it says
  };
  const Awaited awaited(role, grid);
  EXPECT_EQ(list_of(awaited.of(1)), (List{0}));
  EXPECT_EQ(list_of(awaited.of(4)), (List{1, 2}));
  EXPECT_EQ(list_of(awaited.of(5)), (List{2}));
  EXPECT_EQ(list_of(awaited.of(8)), (List{5}));
  EXPECT_EQ(list_of(awaited.of(9)), (List{5, 8}));
}

Scenario two_nodes(int zero, const std::string& framework) {
  return scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": {"base": "dgx-h100", "nodes": 2,)"
      R"( "nic": "25 Gb/s"}, "training": {"global_batch": 16, "sequence_length": 1024,)"
      R"( "framework": ")" +
      framework + R"("}, "layout": {"dp": 16, "zero": )" + std::to_string(zero) +
      R"(, "shard_group": 1, "overlap": {"grad_reduce": true}}})");
}

TEST(IdleWaits, CopiesOfStatesThatOneRankHoldsAreSummedBehindTheirGradients) {
  for (const auto& [zero, framework] : std::initializer_list<std::pair<int, const char*>>{
           {3, "fsdp"}, {2, "fsdp"}, {2, "native"}, {1, "native"}}) {
    const Scenario scenario = two_nodes(zero, framework);
    const auto pricing = make_pricing(scenario, source_folders());
    ASSERT_TRUE(pricing.has_value());
    const testing::LeastStep least = testing::least_step(scenario, **pricing);
    EXPECT_EQ(least.why, "first gradient, reduce copies, update");
    for (const bool fold : {true, false}) {
      const auto forecast = predict(scenario, source_folders(), {.fold = fold, .check = true});
      ASSERT_TRUE(forecast.has_value()) << to_string(forecast.error());
      EXPECT_GE(forecast->step_time.value(), least.time.value() * (1 - 1e-9))
          << framework << ", zero " << zero << (fold ? "" : ", unfolded");
    }
  }
}

TEST(IdleWaits, OneGpuCopiesItsGradientsOutBehindThem) {
  GptCase c;
  c.framework = "fsdp";
  c.attention = "flash";
  c.zero = 3;
  c.extra_layout = R"(, "offload": {"optimizer": 1, "parameters": 1})";
  const Scenario scenario = gpt(c);
  const auto forecast = predict(scenario, source_folders(), {.trace = true, .check = true});
  ASSERT_TRUE(forecast.has_value()) << to_string(forecast.error());
  Seconds first_backward(1e9), first_copy(1e9);
  for (const TraceSlice& slice : forecast->slices) {
    const Seconds end = slice.start + slice.duration;
    if (std::string(slice.name).starts_with("backward")) {
      first_backward = std::min(first_backward, end);
    }
    if (std::string(slice.name).starts_with("offload_gradients")) {
      first_copy = std::min(first_copy, slice.start);
    }
  }
  EXPECT_LT(first_backward, Seconds(1e9));
  EXPECT_GE(first_copy, first_backward);
}

// The norm of one GPU's gradients is read by its host, like that of many.
TEST(IdleWaits, AHostReadsANormThatNobodyElseAddsTo) {
  const Program program = lower(gpt(GptCase{}));
  const RankGrid grid(gpt(GptCase{}).layout);
  const Role& role = program.roles.front();
  const Awaited awaited(role, grid);
  bool found = false;
  for (std::size_t i = 0; i < role.instructions.size(); ++i) {
    if (!role.instructions[i].is<HostWait>()) continue;
    for (const InstructionIndex wait : awaited.of(i)) {
      const auto* run = role.instructions[static_cast<std::size_t>(wait)].as<RunBlock>();
      found = found || (run != nullptr && run->kind == BlockKind::kGradientNorm);
    }
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace stepcast
