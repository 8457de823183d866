// SPDX-License-Identifier: Apache-2.0
// A layer of experts: what it saves for backward, what every dispatcher sends, who holds what.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "expert_scenarios.h"
#include "operation/distinct_destinations.h"
#include "program/decoder_layer.h"
#include "program/expert_shape.h"
#include "program/program.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::with_experts;

constexpr LayerKind kExperts{.experts = true};

Block layer(const ExpertCase& c, RecomputeMode mode = RecomputeMode::kNone) {
  return lower_decoder_layer(with_experts(c), mode, BackwardForm::kWhole, kExperts);
}

ByteCount saved(const Block& block) { return total(block.pass(Pass::kForward).memory.after); }

// The bytes of a pass by the collective's name.
std::map<std::string, ByteCount> messages(const Block& block, Pass pass) {
  std::map<std::string, ByteCount> out;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* collective = std::get_if<Collective>(&operation.work);
    if (collective != nullptr) out[operation.name] += collective->bytes;
  }
  return out;
}

const Collective& collective(const Block& block, Pass pass, const std::string& name) {
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* found = std::get_if<Collective>(&operation.work);
    if (found != nullptr && name == operation.name) return *found;
  }
  throw std::runtime_error("no collective " + name);
}

// docs/moe.md, "Memory": what one layer keeps of a micro-batch, in bf16, beside attention's own.
std::int64_t closed_form(const ExpertCase& c) {
  const std::int64_t t = c.sequence * c.micro_batch / c.tp, h = c.hidden, k = c.top_k,
                     e = c.experts, f = c.ffn;
  const std::int64_t inputs = 2 * t * h + 2 * t * h;          // of the norm, of router and experts
  const std::int64_t router = 4 * t * e + 4 * t * e + t * e;  // logits, probabilities, map
  const std::int64_t rows = 2 * t * k * h + 4 * t * k * f + 2 * t * k * f + 4 * t * k + 8 * t * k;
  const std::int64_t shared = 6 * t * c.shared_ffn;
  return inputs + router + rows + shared;
}

// Norm's input and output, queries, keys and values, context, log-sum-exp. The packed projection
// lives as long as the values in it, and queries and keys have been turned.
std::int64_t attention(const ExpertCase& c) {
  const std::int64_t t = c.sequence * c.micro_batch, h = c.hidden;
  return 4 * t * h + 6 * t * h + 4 * t * h + 2 * t * h + 4 * t * c.heads;
}

TEST(Experts, SaveWhatTheClosedFormSays) {
  for (const auto& [ep, shared] : {std::pair(1, 0), {1, 1024}, {8, 0}, {8, 1024}}) {
    ExpertCase c;
    c.ep = ep;
    c.shared_ffn = shared;
    // A layer's input is counted where it was made, and its output lives on.
    EXPECT_EQ(saved(layer(c)), attention(c) + closed_form(c)) << ep << " " << shared;
  }
}

TEST(Experts, RecomputedActivationsAreNotSaved) {
  ExpertCase c;
  c.ep = 8;
  c.shared_ffn = 1024;
  const std::int64_t t = c.sequence, k = c.top_k, f = c.ffn, h = c.hidden, e = c.experts;
  const auto less = [&](const char* module) {
    ExpertCase own = c;
    own.recompute = R"({"mode":"selective","modules":[")" + std::string(module) + R"("]})";
    return saved(layer(c)) - saved(layer(own, RecomputeMode::kSelective));
  };
  EXPECT_EQ(less("moe_act"), 2 * t * k * f);
  EXPECT_EQ(less("layernorm"), 2 * 2 * t * h);
  EXPECT_EQ(less("shared_experts"), 6 * t * c.shared_ffn);
  EXPECT_EQ(less("moe"),
            9 * t * e + 2 * t * k * h + 6 * t * k * f + 12 * t * k + 6 * t * c.shared_ffn);
}

TEST(Experts, SendEveryRowByAllToAll) {
  ExpertCase c;
  c.ep = 8;
  const Block block = layer(c);
  const std::int64_t rows = c.sequence * c.top_k;
  EXPECT_EQ(messages(block, Pass::kForward),
            (std::map<std::string, ByteCount>{{"gather_counts", 8 * c.experts * 8},
                                              {"dispatch", 2 * rows * c.hidden},
                                              {"dispatch_weights", 4 * rows},
                                              {"combine", 2 * rows * c.hidden}}));
  // Backward is the mirror: the same bytes, and the host knows the counts.
  EXPECT_EQ(messages(block, Pass::kBackward),
            (std::map<std::string, ByteCount>{{"combine_backward", 2 * rows * c.hidden},
                                              {"dispatch_weights_backward", 4 * rows},
                                              {"dispatch_backward", 2 * rows * c.hidden}}));
  EXPECT_EQ(collective(block, Pass::kForward, "dispatch").group, AxisGroup::kExpert);
  EXPECT_EQ(collective(block, Pass::kForward, "dispatch").kind, CollectiveKind::kAllToAll);
}

TEST(Experts, OfSeveralTensorRanksGatherTheirRows) {
  ExpertCase c;
  c.tp = 2;
  c.dp = 4;
  c.ep = 4;
  c.etp = 2;
  const auto sent = messages(layer(c), Pass::kForward);
  const std::int64_t rows = c.sequence / 2 * c.top_k;
  EXPECT_EQ(sent.at("dispatch"), 2 * rows * c.hidden);
  EXPECT_EQ(sent.at("gather_rows"), 2 * 2 * rows * c.hidden);
  EXPECT_EQ(sent.at("reduce_rows"), 4 * 2 * rows * c.hidden);  // in fp32
  // The weight of a row goes with it, a number in fp32; backward its gradient comes back.
  EXPECT_EQ(sent.at("gather_weights"), 4 * 2 * rows);
  EXPECT_EQ(messages(layer(c), Pass::kBackward).at("reduce_weights"), 4 * 2 * rows);
}

TEST(Experts, GatherAllTokensWithTheAllGatherDispatcher) {
  ExpertCase c;
  c.ep = 8;
  c.dispatcher = "allgather";
  const Block block = layer(c);
  const std::int64_t tokens = 8 * c.sequence;
  EXPECT_EQ(messages(block, Pass::kForward),
            (std::map<std::string, ByteCount>{{"dispatch", 2 * tokens * c.hidden},
                                              {"gather_routing", 4 * tokens * c.experts},
                                              {"combine", 4 * tokens * c.hidden}}));
  EXPECT_EQ(collective(block, Pass::kForward, "combine").kind, CollectiveKind::kReduceScatter);
}

TEST(Experts, SendATokenOnceToEveryRankWithDeepEp) {
  for (const char* dispatcher : {"deepep", "hybridep", "flex"}) {
    ExpertCase c;
    c.ep = 8;
    c.dispatcher = dispatcher;
    const Collective dispatch = collective(layer(c), Pass::kForward, "dispatch");
    EXPECT_EQ(dispatch.copies.value, c.top_k);
    EXPECT_EQ(dispatch.bytes, 2 * c.sequence * c.top_k * c.hidden);
    EXPECT_EQ(dispatch.store_sms.value, std::string(dispatcher) == "hybridep" ? 0 : 20);
  }
}

TEST(Experts, ExchangeTokensWithAsManySmsAsAreStated) {
  ExpertCase c;
  c.ep = 8;
  c.more_moe = R"(,"dispatcher_sms":32)";
  c.dispatcher = "deepep";
  const Collective stores = collective(layer(c), Pass::kForward, "combine");
  EXPECT_EQ(stores.store_sms.value, 32);
  EXPECT_EQ(stores.held_sms.value, 0);
  c.dispatcher = "hybridep";
  const Collective copies = collective(layer(c), Pass::kBackward, "combine_backward");
  EXPECT_EQ(copies.store_sms.value, 0);
  EXPECT_EQ(copies.held_sms.value, 32);
}

// The first half of the shared expert follows the exchange to the experts, the second that back.
// Nothing that they write is read before the exchange has ended, and they keep what they kept.
TEST(Experts, RunTheSharedOneBesideTheirExchanges) {
  ExpertCase c;
  c.ep = 8;
  c.shared_ffn = 1024;
  const Block before = layer(c);
  c.more_layout = R"(,"overlap":{"shared_experts":true})";
  const Block beside = layer(c);
  EXPECT_EQ(saved(beside), saved(before));
  const auto behind = [&](Pass pass, const std::string& exchange) {
    const std::vector<Operation>& all = beside.pass(pass).operations;
    const auto at = std::ranges::find_if(
        all, [&](const Operation& operation) { return operation.name == exchange; });
    EXPECT_NE(at, all.end()) << exchange;
    EXPECT_EQ(at->stream, BlockStream::kCommunication) << exchange;
    return std::string((at + 1)->name);
  };
  EXPECT_EQ(behind(Pass::kForward, "dispatch"), "shared_up");
  EXPECT_EQ(behind(Pass::kForward, "combine"), "shared_down");
  EXPECT_EQ(behind(Pass::kBackward, "combine_backward"), "shared_down_dgrad");
  EXPECT_EQ(behind(Pass::kBackward, "dispatch_backward"), "shared_up_dgrad");
}

// A token visits so many of G ranks with 8 experts (docs/moe.md, "Messages").
TEST(DistinctDestinations, AreTheClosedForm) {
  EXPECT_NEAR(distinct_destinations(8, 8), 5.25, 0.005);
  EXPECT_NEAR(distinct_destinations(16, 8), 6.45, 0.005);
  EXPECT_NEAR(distinct_destinations(32, 8), 7.18, 0.005);
  EXPECT_NEAR(distinct_destinations(64, 8), 7.576, 0.0005);
  EXPECT_DOUBLE_EQ(distinct_destinations(1, 8), 1);
}

TEST(Experts, OfTheFullestRankSetThePace) {
  ExpertCase c;
  c.ep = 8;
  c.imbalance = 1.25;
  const auto shape = [](const ExpertCase& own) {
    const Scenario scenario = with_experts(own);
    return ExpertShape(scenario, Shape(scenario));
  };
  const std::int64_t rows = c.sequence * c.top_k;
  EXPECT_EQ(shape(c).sent, rows);
  EXPECT_EQ(shape(c).rows, rows * 5 / 4);
  c.ep = 1;
  EXPECT_EQ(shape(c).rows, rows) << "one rank has all rows, whichever expert is the fullest";
  c.ep = 8;
  c.capacity_factor = 1.5;
  EXPECT_EQ(shape(c).rows, rows * 3 / 2) << "padded to the capacity";
}

TEST(Experts, AreReducedOverTheirOwnDataRanks) {
  ExpertCase c;
  c.layers = 4;
  c.dense_layers = 1;
  c.dp = 16;
  c.ep = 8;
  const Program program = lower(with_experts(c));
  const Role& role = program.roles.front();
  const std::int64_t experts = 3LL * 3 * c.hidden * c.ffn * c.experts / 8;
  ASSERT_NE(role.stretch(AxisGroup::kExpertData), nullptr);
  EXPECT_EQ(role.stretch(AxisGroup::kExpertData)->range.size(), experts);
  std::map<AxisGroup, std::int64_t> reduced;
  for (const Instruction& instruction : role.instructions) {
    const auto* call = instruction.as<CollectiveCall>();
    if (call == nullptr || call->purpose != Purpose::kGradients) continue;
    reduced[call->group] += call->elements.size();
  }
  EXPECT_EQ(reduced.at(AxisGroup::kExpertData), experts);
  EXPECT_EQ(reduced.at(AxisGroup::kData), role.parameters - experts);
}

TEST(Experts, WaitForTheHostUnlessTheirSizesAreKnown) {
  const auto reads = [](const ExpertCase& c) {
    const Block block = layer(c);
    return std::ranges::count_if(block.pass(Pass::kForward).operations,
                                 [](const Operation& operation) {
                                   return std::holds_alternative<HostRead>(operation.work);
                                 });
  };
  ExpertCase c;
  c.ep = 8;
  EXPECT_EQ(reads(c), 1);
  c.capacity_factor = 1;
  EXPECT_EQ(reads(c), 0);
  c.capacity_factor = 0;
  c.dispatcher = "hybridep";
  EXPECT_EQ(reads(c), 1);
  c.more_moe = R"(,"rank_capacity_factor":1.5)";
  EXPECT_EQ(reads(c), 0);
}

// Buffers of rows have half as much room again, and kernels as much work as before.
TEST(Experts, BuffersHaveTheRoomThatIsStatedBeforehand) {
  ExpertCase c;
  c.ep = 8;
  c.dispatcher = "hybridep";
  const Block before = layer(c);
  c.more_moe = R"(,"rank_capacity_factor":1.5)";
  const Block beforehand = layer(c);
  const std::int64_t rows = c.sequence * c.top_k;
  EXPECT_EQ(saved(beforehand) - saved(before),
            rows * (2 * c.hidden + 4 * c.ffn + 2 * c.ffn + 4 + 8) / 2);
  const auto work = [](const Block& block) {
    double sum = 0;
    for (const Operation& operation : block.pass(Pass::kBackward).operations) {
      const auto kernel = memory_bound(operation.work);
      sum += flops_of(operation).value() + (kernel ? kernel->bytes : 0);
    }
    return sum;
  };
  EXPECT_GT(work(before), 0);
  EXPECT_EQ(work(beforehand), work(before));
}

// Makes a layer with a bias for each expert, or with none.
Block biased_layer(const std::string& release, bool biases) {
  ExpertCase c;
  c.dp = 1;
  c.more_model = biases ? R"(,"mlp_bias":true)" : "";
  c.more_training = R"(,"release":")" + release + R"(")";
  return layer(c);
}

double traffic_of(const Block& block, Pass pass, const std::string& name) {
  double bytes = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto kernel = memory_bound(operation.work);
    if (operation.name == name && kernel) bytes += kernel->bytes;
  }
  return bytes;
}

// A row of h elements: 2 x 2 + 6 x 4 bytes an element forward, 2 x 2 + 8 x 4 backward. T x K rows.
TEST(BiasedExperts, AddTheirBiasBehindTheProduct) {
  const ExpertCase c;
  const double elements = 1.0 * c.sequence * c.top_k * c.hidden;
  const Block before = biased_layer("2026-07", true);
  EXPECT_EQ(traffic_of(before, Pass::kForward, "experts_apply_bias"), 28 * elements);
  EXPECT_EQ(traffic_of(before, Pass::kBackward, "experts_apply_bias"), 36 * elements);
  const Block fused = biased_layer("2026-08", true);
  EXPECT_EQ(traffic_of(fused, Pass::kForward, "experts_apply_bias"), 0);
  // The gradients of the routing weights read the output's gradient once.
  EXPECT_EQ(traffic_of(fused, Pass::kBackward, "experts_apply_bias"), 2 * elements);
  EXPECT_EQ(traffic_of(biased_layer("2026-07", false), Pass::kForward, "experts_apply_bias"), 0);
}

// 13 x 2 + 2 x 4 bytes of an element of the width in steps; fused it reads two and writes one.
TEST(BiasedExperts, RunTheirActivationInSteps) {
  const ExpertCase c;
  const double elements = 1.0 * c.sequence * c.top_k * c.ffn;
  const char* name = "experts_activation";
  EXPECT_EQ(traffic_of(biased_layer("2026-07", true), Pass::kForward, name), 34 * elements);
  EXPECT_EQ(traffic_of(biased_layer("2026-07", true), Pass::kBackward, name), 72 * elements);
  EXPECT_EQ(traffic_of(biased_layer("2026-08", true), Pass::kForward, name), 6 * elements);
}

// One byte for each of 1024 tokens of 8 ranks and 16 experts, once a layer: backward knows it.
TEST(Experts, HybridEpGathersTheRoutingOfAllTokens) {
  ExpertCase c;
  c.ep = 8;
  c.dispatcher = "hybridep";
  const Block block = layer(c);
  EXPECT_EQ(messages(block, Pass::kForward)["gather_routing_map"], 8 * 1024 * 16);
  EXPECT_EQ(messages(block, Pass::kInputGradient).count("gather_routing_map"), 0u);
  c.dispatcher = "deepep";
  EXPECT_EQ(messages(layer(c), Pass::kForward).count("gather_routing_map"), 0u);
}

}  // namespace
}  // namespace stepcast
