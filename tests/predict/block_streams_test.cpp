// SPDX-License-Identifier: Apache-2.0
// Blocks that run operations beside each other take as long as one macro activity, operation by
// operation, and cut at their collectives.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "asynchronous_program.h"
#include "core/each.h"
#include "core/seeded_random.h"
#include "expert_scenarios.h"
#include "predict/cut_passes.h"
#include "predict/memory_replay.h"
#include "predict/record_trace.h"
#include "predict/timeline.h"
#include "program/block_groups.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::asynchronous;
using testing::GptCase;
using testing::is_collective;
using testing::on_streams;

struct PricedCase {
  explicit PricedCase(const GptCase& c) : PricedCase(testing::gpt(c)) {}
  explicit PricedCase(const Scenario& given) : scenario(given), listed(lower(scenario)) {
    auto made = make_pricing(scenario, testing::source_folders());
    EXPECT_TRUE(made.has_value());
    pricing = std::move(*made);
  }
  Scenario scenario;
  Program listed;
  std::unique_ptr<Pricing> pricing;
};

struct Replayed {
  Seconds step;
  TimeParts parts;
  std::size_t tasks = 0;
  Prediction trace;
};

Replayed replay(const PricedCase& priced, const Program& program, bool expand,
                bool contention = true) {
  const RankGrid grid(priced.scenario.layout);
  const Traffic traffic =
      place_traffic(priced.scenario, program, grid, priced.pricing->collectives);
  const Symmetry symmetry = find_symmetry(priced.scenario, grid, traffic, true);
  const RunCosts costs(priced.scenario, program, grid, symmetry, priced.pricing->kernels,
                       priced.pricing->collectives);
  const Profile& profile = priced.pricing->kernels.profile();
  const SimulationInput input{priced.scenario,
                              program,
                              grid,
                              traffic,
                              symmetry,
                              costs,
                              profile.host[priced.scenario.training.framework],
                              expand,
                              contention,
                              false,
                              profile.sms_per_channel};
  auto simulation = simulate(input, 2);
  EXPECT_TRUE(simulation.has_value()) << (simulation ? "" : to_string(simulation.error()));
  if (!simulation) return {};
  const ClassTimeline timeline = read_timeline(input, *simulation, 0, 1);
  Replayed out{sim::seconds(timeline.step_end - timeline.step_begin),
               timeline.parts,
               simulation->task_count,
               {}};
  record_trace(input, *simulation, timeline.step_begin, out.trace);
  return out;
}

// Every pass is cut at every collective.
Program cut_everywhere(const Program& program) {
  Cuts cuts;
  for (const Role& role : program.roles) {
    std::vector<std::vector<AxisGroup>>& own = cuts.emplace_back();
    for (const Instruction& what : role.instructions) {
      own.emplace_back();
      if (what.is<RunPass>()) own.back() = groups_in_blocks(program);
    }
  }
  return cut_passes(program, cuts);
}

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
    const Replayed macro = replay(priced, program, false), expanded = replay(priced, program, true);
    expect_same(macro, expanded);
    EXPECT_GT(expanded.tasks, 10 * macro.tasks);
    EXPECT_LE(macro.step.value(), replay(priced, priced.listed, false).step.value() + 1e-9);
  }
}

// Nothing else is under way, so a cut changes nothing.
TEST(BlockStreams, TakeAsLongWhereTheyAreCut) {
  for (const GptCase& c : each_of(cases())) {
    SCOPED_TRACE(testing::text_of(c));
    const PricedCase priced(c);
    const Program program = asynchronous(priced.listed), cut = cut_everywhere(program);
    const Replayed macro = replay(priced, program, false), parts = replay(priced, cut, false);
    expect_same(macro, parts);
    expect_same(parts, replay(priced, cut, true));
    EXPECT_GT(parts.tasks, macro.tasks);
  }
}

// Siblings in step share links as far as the fluid network makes them: on the PCIe of a node, where
// an exchange of tokens loads other links than a ring does, and on the NICs of two nodes.
TEST(BlockStreams, OfSiblingsThatShareLinksTakeAsLongWhereTheyAreCut) {
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
        const Replayed macro = replay(priced, priced.listed, false);
        const Replayed cut = replay(priced, cut_everywhere(priced.listed), false);
        EXPECT_GT(macro.parts.exposed_ep, 0.01 * macro.step);
        EXPECT_NEAR(macro.parts.exposed_ep / cut.parts.exposed_ep, 1, 0.01);
      }
    }
  }
}

// Where the host is ahead, what a cut pass waits for is what its block has waited for.
TEST(BlockStreams, CountAsExposedWhatTheyWaitForWhereTheyAreCut) {
  GptCase c = two_ranks(8192);
  c.heads = 64;
  c.sequence = 2048;
  c.sequence_parallel = true;
  c.extra_training = R"(, "async_tensor_backward": false)";
  const PricedCase priced(c);
  const Program program = asynchronous(priced.listed);
  const Replayed macro = replay(priced, program, false);
  const Replayed listed = replay(priced, priced.listed, false);
  EXPECT_LT(macro.parts.exposed_tp.value(), 0.9 * listed.parts.exposed_tp.value());
  for (const Replayed& cut : {replay(priced, cut_everywhere(program), false),
                              replay(priced, cut_everywhere(program), true)}) {
    // The beginning of a step, where the host is not ahead yet, is told in other words.
    EXPECT_NEAR(cut.parts.exposed_tp / macro.parts.exposed_tp, 1, 0.01);
    EXPECT_NEAR(cut.parts.compute / macro.parts.compute, 1, 0.001);
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
    const Program cut = cut_everywhere(program);
    // Two collectives at once share their links where they are cut, and not in a macro activity.
    const Replayed macro = replay(priced, program, false, false);
    expect_same(macro, replay(priced, program, true, false));
    expect_same(macro, replay(priced, cut, false, false));
    expect_same(macro, replay(priced, cut, true, false));
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

struct CutBeside {
  CutBeside() : priced(over_nodes()), program(asynchronous(priced.listed)) {
    const RankGrid grid(priced.scenario.layout);
    const Traffic traffic =
        place_traffic(priced.scenario, program, grid, priced.pricing->collectives);
    cuts = find_cuts(priced.scenario, program, grid, traffic, *priced.pricing);
  }
  PricedCase priced;
  Program program;
  Cuts cuts;
};

TEST(CutPassesBeside, MeetTheReductionOfGradients) {
  const CutBeside made;
  ASSERT_FALSE(made.cuts.empty());
  const Program cut = cut_passes(made.program, made.cuts);
  const Replayed parts = replay(made.priced, cut, false);
  expect_same(parts, replay(made.priced, cut, true));
  EXPECT_GT(parts.step.value(), replay(made.priced, cut, false, false).step.value() * 1.001);
}

TEST(CutPassesBeside, RunEveryOperationOnceAndHoldWhatTheirPassHolds) {
  const CutBeside made;
  const Program cut = cut_everywhere(made.program);
  const auto operations = [](const Program& program) {
    std::map<std::string, int> out;
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->purpose == Purpose::kActivations) {
        EXPECT_EQ(what.stream, Stream::kBlockCommunication);
        ++out[what.name];
      }
      for_each_operation(program, program.roles[0], what,
                         [&](const Operation& one, const BlockVisit&) { ++out[one.name]; });
    }
    return out;
  };
  EXPECT_EQ(operations(cut), operations(made.program));
  const MemoryPeak whole = replay_memory(made.program, made.program.roles[0]);
  const MemoryPeak parts = replay_memory(cut, cut.roles[0]);
  EXPECT_EQ(whole.parts, parts.parts);
}

// The trace draws a collective on its own stream, beside the product that hides it.
TEST(BlockStreams, AreDrawnBesideEachOther) {
  const PricedCase priced(two_ranks(2048));
  const Replayed replayed = replay(priced, asynchronous(priced.listed), false);
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
