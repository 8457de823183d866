// SPDX-License-Identifier: Apache-2.0
// Blocks that run operations beside each other take as long as one macro activity, operation by
// operation, and stamped into the step at their collectives.
#include <gtest/gtest.h>

#include <string>

#include "asynchronous_program.h"
#include "core/each.h"
#include "core/seeded_random.h"
#include "expert_scenarios.h"
#include "predict/shared_links.h"
#include "program/walk.h"
#include "replayed_program.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::everywhere;
using testing::GptCase;
using testing::is_collective;
using testing::on_streams;
using testing::PricedCase;
using testing::replay;
using testing::Replayed;

// A picosecond is lost or won at every one of many thousand tasks, at most.
void expect_same(const Replayed& one, const Replayed& other) {
  EXPECT_NEAR(one.step.value(), other.step.value(), 1e-9 * one.step.value() + 1e-7);
  for (const Replayed& each : {one, other}) {
    EXPECT_NEAR(each.parts.total().value(), each.step.value(), 1e-9 * each.step.value());
  }
}

GptCase two_ranks(int hidden) {
  GptCase c;
  c.tp = 2;
  c.hidden = hidden;
  c.global_batch = 4;
  return c;
}

std::vector<GptCase> cases() {
  std::vector<GptCase> out;
  for (const int hidden : {256, 2048}) {  // the host binds, and does not
    out.insert(out.end(), 4, two_ranks(hidden));
    GptCase* last = out.data() + out.size();
    last[-1].sequence_parallel = true;
    last[-2].sequence_parallel = true;
    last[-2].recompute = "full";
    last[-3].pp = 2;
    last[-3].sequence_parallel = true;
    last[-3].recompute = "selective";
  }
  return out;
}

TEST(BlockStreams, TakeTheTimesOfTheirOperations) {
  for (const GptCase& c : each_of(cases())) {
    SCOPED_TRACE(testing::text_of(c));
    const PricedCase priced(c);
    const Program program = asynchronous(priced.listed);
    const Replayed macro = replay(priced, program, {});
    const Replayed expanded = replay(priced, program, {.expand = true});
    expect_same(macro, expanded);
    EXPECT_GT(expanded.tasks, 10 * macro.tasks);
    EXPECT_LE(macro.step.value(), replay(priced, priced.listed, {}).step.value() + 1e-9);
  }
}

// Nothing else is under way, so a stamp changes nothing.
TEST(BlockStreams, TakeAsLongWhereTheyAreStamped) {
  for (const GptCase& c : each_of(cases())) {
    SCOPED_TRACE(testing::text_of(c));
    const PricedCase priced(c);
    const Program program = asynchronous(priced.listed);
    const Stamps stamps = everywhere(program);
    const Replayed macro = replay(priced, program, {});
    const Replayed parts = replay(priced, program, {.stamps = stamps});
    expect_same(macro, parts);
    expect_same(parts, replay(priced, program, {.expand = true, .stamps = stamps}));
    EXPECT_GT(parts.tasks, macro.tasks);
  }
}

// Siblings in step share links as far as the fluid network makes them: on the PCIe of a node, where
// an exchange of tokens loads other links than a ring does, and on the NICs of two nodes.
TEST(BlockStreams, OfSiblingsThatShareLinksTakeAsLongWhereTheyAreStamped) {
  testing::ExpertCase c;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 2048;
  c.more_layout = R"(,"order":"tp-cp-dp-ep-pp")";
  for (const char* cluster : {"a100-pcie-8", "dgx-h100"}) {
    c.cluster = cluster;
    c.dp = std::string(cluster) == "dgx-h100" ? 16 : 8;
    for (const int ep : {2, 4, 8}) {
      c.ep = ep;
      for (const char* dispatcher : {"alltoall", "allgather", "deepep"}) {
        c.dispatcher = dispatcher;
        SCOPED_TRACE(testing::text_of(c));
        const PricedCase priced(testing::with_experts(c));
        const Replayed macro = replay(priced, priced.listed, {});
        const Replayed parts = replay(priced, priced.listed, {.stamps = everywhere(priced.listed)});
        EXPECT_GT(macro.parts.exposed_ep, 0.01 * macro.step);
        EXPECT_NEAR(macro.parts.exposed_ep / parts.parts.exposed_ep, 1, 0.01);
      }
    }
  }
}

// If the host is ahead, a stamped pass waits for what its block has waited for.
TEST(BlockStreams, CountAsExposedWhatTheyWaitForWhereTheyAreStamped) {
  GptCase c = two_ranks(8192);
  c.heads = 64;
  c.sequence = 2048;
  c.sequence_parallel = true;
  c.extra_training = R"(, "async_tensor_backward": false)";
  const PricedCase priced(c);
  const Program program = asynchronous(priced.listed);
  const Replayed macro = replay(priced, program, {});
  const Replayed listed = replay(priced, priced.listed, {});
  const Stamps stamps = everywhere(program);
  EXPECT_LT(macro.parts.exposed_tp.value(), 0.9 * listed.parts.exposed_tp.value());
  for (const Replayed& stamped : {replay(priced, program, {.stamps = stamps}),
                                  replay(priced, program, {.expand = true, .stamps = stamps})}) {
    // The beginning of a step, where the host is not ahead yet, is told in other words.
    EXPECT_NEAR(stamped.parts.exposed_tp / macro.parts.exposed_tp, 1, 0.01);
    EXPECT_NEAR(stamped.parts.compute / macro.parts.compute, 1, 0.001);
  }
}

// Operations of every kind on any stream, with waits that no data asks for.
Program random_streams(const Program& listed, SeededRandom& random) {
  Program out = on_streams(listed, [&](const Operation&) {
    return static_cast<BlockStream>(random.below(2) == 0 ? 0 : random.below(kBlockStreams));
  });
  for (Block& block : out.blocks) {
    for (BlockPass& pass : block.passes) {
      for (std::size_t i = 1; i < pass.operations.size(); ++i) {
        if (random.below(4) > 0) continue;
        const auto before = static_cast<std::int32_t>(random.below(static_cast<std::int64_t>(i)));
        const BlockStream stream = pass.operations[static_cast<std::size_t>(before)].stream;
        std::int32_t& after = pass.operations[i].after[static_cast<std::size_t>(stream)];
        if (stream != pass.operations[i].stream) after = std::max(after, before);
      }
    }
  }
  return out;
}

TEST(BlockStreams, TakeTheTimesOfTheirOperationsWhateverRunsBesideWhat) {
  SeededRandom random(20261122);
  for (int round = 0; round < 12; ++round) {
    GptCase c = two_ranks(random.below(2) == 0 ? 256 : 1024);
    c.layers = 2;
    c.global_batch = 2;
    c.sequence_parallel = random.below(2) == 0;
    const PricedCase priced(c);
    const Program program = random_streams(priced.listed, random);
    const Stamps stamps = everywhere(program);
    // Two collectives at once share their links where they are stamped, and not in a macro
    // activity.
    const Replayed macro = replay(priced, program, {.contention = false});
    expect_same(macro, replay(priced, program, {.expand = true, .contention = false}));
    expect_same(macro, replay(priced, program, {.contention = false, .stamps = stamps}));
    expect_same(macro,
                replay(priced, program, {.expand = true, .contention = false, .stamps = stamps}));
  }
}

GptCase over_nodes() {
  GptCase c;
  c.tp = 8;
  c.dp = 2;
  c.hidden = 4096;
  c.heads = 32;
  c.sequence = 1024;
  c.layers = 12;
  c.global_batch = 4;
  c.cluster = R"("base": "dgx-a100-80g", "gpus_per_node": 4, "nics_per_node": 2)";
  c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  return c;
}

struct StampedBeside {
  StampedBeside() : priced(over_nodes()), program(asynchronous(priced.listed)) {
    const RankGrid grid(priced.scenario.layout);
    const Traffic traffic =
        place_traffic(priced.scenario, program, grid, priced.pricing->collectives);
    stamps = find_stamps(priced.scenario, program, grid, traffic, *priced.pricing);
  }
  PricedCase priced;
  Program program;
  Stamps stamps;
};

TEST(StampedPassesBeside, MeetTheReductionOfGradients) {
  const StampedBeside made;
  ASSERT_FALSE(made.stamps.empty());
  const Replayed parts = replay(made.priced, made.program, {.stamps = made.stamps});
  expect_same(parts, replay(made.priced, made.program, {.expand = true, .stamps = made.stamps}));
  const Replayed alone =
      replay(made.priced, made.program, {.contention = false, .stamps = made.stamps});
  EXPECT_GT(parts.step.value(), alone.step.value() * 1.001);
}

// Each operation is in one task, and each collective is a task on the stream that the block names.
TEST(StampedPassesBeside, RunEveryOperationOnce) {
  const StampedBeside made;
  const RankGrid grid(made.priced.scenario.layout);
  const Traffic traffic =
      place_traffic(made.priced.scenario, made.program, grid, made.priced.pricing->collectives);
  const Symmetry symmetry =
      find_symmetry(made.priced.scenario, grid, traffic, made.priced.pricing->collectives, true);
  const RunCosts costs(made.priced.scenario, made.program, grid, symmetry,
                       made.priced.pricing->kernels, made.priced.pricing->collectives);
  const Role& role = made.program.roles[0];
  int passes = 0, calls = 0;
  for (const Instruction& what : role.instructions) {
    if (!what.is<RunPass>()) continue;
    ++passes;
    std::int32_t operations = 0, next = 0;
    for_each_operation(made.program, role, what,
                       [&](const Operation&, const BlockVisit&) { ++operations; });
    for (const PassTask& task : costs.tasks(0, what, groups_in_blocks(made.program), false).tasks) {
      EXPECT_EQ(task.begin, next);
      EXPECT_LE(task.begin, task.end);
      next = task.end;
      if (task.call == nullptr) continue;
      ++calls;
      EXPECT_EQ(task.stream, Stream::kBlockCommunication);
      EXPECT_EQ(task.end, task.begin + 1);
    }
    EXPECT_EQ(next, operations);
  }
  EXPECT_GT(passes, 0);
  EXPECT_GT(calls, passes);
}

// The trace draws a collective on its own stream, beside the product that hides it.
TEST(BlockStreams, AreDrawnBesideEachOther) {
  const PricedCase priced(two_ranks(2048));
  const Replayed replayed = replay(priced, asynchronous(priced.listed), {});
  const TraceSlice* reduction = nullptr;
  int beside = 0;
  for (const TraceSlice& slice : replayed.trace.slices) {
    if (slice.stream == Stream::kBlockCommunication) {
      EXPECT_TRUE(slice.collective);
      if (slice.name == std::string("mlp_input_gradient")) reduction = &slice;
    } else if (reduction != nullptr && slice.name == std::string("mlp_up_wgrad")) {
      EXPECT_NEAR(slice.start.value(), reduction->start.value(), 1e-12);
      ++beside;
    }
  }
  EXPECT_EQ(beside, 4 * 4);  // layers and micro-batches
}

}  // namespace
}  // namespace stepcast
