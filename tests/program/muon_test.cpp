// SPDX-License-Identifier: Apache-2.0
// Muon: which matrices it takes, the products of its iterations, messages of its modes, memory.
#include "program/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/each.h"
#include "expert_scenarios.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

// Five iterations of the products m m n twice and m m m, m the shorter side.
double newton_schulz_flops(std::int64_t m, std::int64_t n) {
  const auto low = static_cast<double>(std::min(m, n)), high = static_cast<double>(std::max(m, n));
  return 5 * (4 * low * low * high + 2 * low * low * low);
}

constexpr auto kOptimizerPart = static_cast<std::size_t>(MemoryCategory::kOptimizer);

GptCase with_muon(const std::string& mode = "duplicated") {
  GptCase c;
  c.framework = "megatron";
  c.dropout = 0;
  c.tied = false;
  c.attention = "flash";
  c.zero = 1;
  c.extra_training = R"(, "optimizer": "muon", "muon_mode": ")" + mode + "\"";
  return c;
}

struct MuonUpdate {
  double flops = 0;  // of products
  std::vector<Collective> messages;
};

MuonUpdate muon_update_of(const Program& program) {
  MuonUpdate out;
  const auto found = std::ranges::find_if(
      program.blocks, [](const Block& block) { return block.kind == BlockKind::kUpdate; });
  EXPECT_NE(found, program.blocks.end());
  for_each_operation(*found, [&](const Operation& operation) {
    if (const auto* gemm = std::get_if<Gemm>(&operation.work)) {
      EXPECT_EQ(operation.phase, Phase::kOptimizer);
      out.flops += flops_of(*gemm);
    }
    if (const auto* sent = std::get_if<Collective>(&operation.work)) out.messages.push_back(*sent);
  });
  return out;
}

ByteCount bytes_of_kind(const std::vector<Collective>& messages, CollectiveKind kind) {
  ByteCount sum = 0;
  for (const Collective& one : messages) sum += one.kind == kind ? one.bytes : 0;
  return sum;
}

// The matrices of a layer of the GPT form: three of attention's packed one, its output, and two of
// the MLP, all of this width.
std::vector<MuonMatrix> layer_matrices(const Scenario& s) {
  const std::int64_t h = s.model.hidden;
  return {{h, h, Cut::kNone, 1}, {h, h, Cut::kNone, 1},           {h, h, Cut::kNone, 1},
          {h, h, Cut::kNone, 1}, {s.model.ffn, h, Cut::kNone, 1}, {h, s.model.ffn, Cut::kNone, 1}};
}

TEST(Muon, TakesTheMatricesOfLayersAndNoTable) {
  const Scenario scenario = gpt(with_muon());
  ASSERT_EQ(scenario.model.kv_heads, scenario.model.heads);
  const Program program = lower(scenario);
  double flops = 0;
  std::int64_t elements = 0;
  for (const MuonMatrix& matrix : each_of(layer_matrices(scenario))) {
    flops += newton_schulz_flops(matrix.rows, matrix.columns);
    elements += matrix.elements();
  }
  const auto layers = scenario.model.layers;
  const auto shares = muon_shares(scenario, program, program.roles[0]);
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].states.elements, layers * elements);
  EXPECT_EQ(shares[0].states.updated, layers * elements);  // one data rank
  EXPECT_EQ(shares[0].padding(1), 0);
  const MuonUpdate update = muon_update_of(program);
  EXPECT_NEAR(update.flops / (static_cast<double>(layers) * flops), 1, 1e-12);
  EXPECT_TRUE(update.messages.empty());
  // One moment of them, two of the rest, and a master copy of both.
  const std::int64_t all = program.roles[0].parameters;
  EXPECT_EQ(program.roles[0].persistent[kOptimizerPart],
            12 * (all - layers * elements) + 8 * layers * elements);
}

// Each tensor rank gathers the fp32 momentum of what is cut, and does all of the work.
TEST(Muon, DuplicatedGathersTheMomentumOverTensorRanks) {
  GptCase c = with_muon("duplicated");
  const Scenario one = gpt(c);
  c.tp = 4;
  const MuonUpdate alone = muon_update_of(lower(one)), cut = muon_update_of(lower(gpt(c)));
  EXPECT_NEAR(cut.flops / alone.flops, 1, 1e-12);
  std::int64_t elements = 0;
  for (const MuonMatrix& matrix : each_of(layer_matrices(one))) elements += matrix.elements();
  EXPECT_EQ(bytes_of_kind(cut.messages, CollectiveKind::kAllGather),
            4 * one.model.layers * elements);
}

// The products with the matrix itself shrink by the tensor ranks, A A does not; each iteration sums
// A, 2 m^2 bytes. m is the side that is not cut: all matrices here are cut to h by something.
TEST(Muon, DistributedSumsTheSquareOfEachIteration) {
  GptCase c = with_muon("distributed");
  c.tp = 4;
  const Scenario scenario = gpt(c);
  const MuonUpdate update = muon_update_of(lower(scenario));
  double flops = 0;
  ByteCount summed = 0;
  for (const MuonMatrix& matrix : each_of(layer_matrices(scenario))) {
    const auto m = static_cast<double>(scenario.model.hidden);
    const double n = static_cast<double>(matrix.elements()) / m;
    flops += 5 * (4 * m * m * n / 4 + 2 * m * m * m);
    summed += 5 * 2 * scenario.model.hidden * scenario.model.hidden + 4;  // and the norm
  }
  const auto layers = static_cast<double>(scenario.model.layers);
  EXPECT_NEAR(update.flops / (layers * flops), 1, 1e-12);
  EXPECT_EQ(bytes_of_kind(update.messages, CollectiveKind::kAllReduce),
            scenario.model.layers * summed);
}

// Two messages a step, and each matrix is worked on once by the tensor ranks together.
TEST(Muon, ByLayerSendsMatricesHomeAndBack) {
  GptCase c = with_muon("layer");
  const MuonUpdate alone = muon_update_of(lower(gpt(c)));
  c.tp = 4;
  const MuonUpdate update = muon_update_of(lower(gpt(c)));
  ASSERT_EQ(update.messages.size(), 2U);
  EXPECT_EQ(update.messages[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(update.messages[0].bytes, 2 * update.messages[1].bytes);  // fp32, and bf16
  EXPECT_LT(update.flops, 0.5 * alone.flops);
  EXPECT_GE(update.flops, 0.25 * alone.flops);
}

// Whole matrices are dealt: a rank may have more than its part, and never less than one if there is
// one for each.
TEST(Muon, DataRanksShareTheMatrices) {
  GptCase c = with_muon();
  const Program one = lower(gpt(c));
  for (const int ranks : each_of(std::vector{2, 4, 8})) {
    c.dp = ranks;
    c.global_batch = 8;
    const Scenario scenario = gpt(c);
    const Program program = lower(scenario);
    const auto share = muon_shares(scenario, program, program.roles[0]).at(0);
    EXPECT_GE(share.padding(ranks), 0);
    EXPECT_LE(share.states.updated,
              1.3 * static_cast<double>(share.states.elements) / ranks +
                  4.0 * static_cast<double>(scenario.model.hidden * scenario.model.hidden));
    EXPECT_LE(muon_update_of(program).flops, muon_update_of(one).flops);
    EXPECT_GE(muon_update_of(program).flops, muon_update_of(one).flops / ranks);
    // The padding of the shards travels too, in 4 bytes of gradients.
    ByteCount reduced = 0;
    for (const Instruction& what : program.roles[0].instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call != nullptr && call->purpose == Purpose::kGradients) reduced += call->message.bytes;
    }
    const ByteCount padded = 4 * (program.roles[0].parameters + share.padding(ranks));
    EXPECT_NEAR(static_cast<double>(reduced) / static_cast<double>(padded), 1, 1e-6);
  }
}

// Each tensor rank takes its part for the matrix: queries, keys, values and up lose rows, the two
// others columns.
TEST(Muon, BlockwiseTakesPartsForMatrices) {
  GptCase c = with_muon("blockwise");
  c.tp = 4;
  const Scenario scenario = gpt(c);
  const MuonUpdate update = muon_update_of(lower(scenario));
  double flops = 0;
  for (const MuonMatrix& matrix : each_of(layer_matrices(scenario))) {
    const std::int64_t h = scenario.model.hidden;
    flops += newton_schulz_flops(h, matrix.elements() / h / 4);
  }
  const auto layers = static_cast<double>(scenario.model.layers);
  EXPECT_NEAR(update.flops / (layers * flops), 1, 1e-12);
  EXPECT_TRUE(update.messages.empty());
}

TEST(Muon, EachExpertIsAMatrixOfItsOwnRanks) {
  testing::ExpertCase c;
  c.ep = 4;
  c.dp = 4;
  c.more_training = R"(,"optimizer":"muon")";
  const Scenario scenario = testing::with_experts(c);
  const Program program = lower(scenario);
  const auto shares = muon_shares(scenario, program, program.roles[0]);
  ASSERT_EQ(shares.size(), 2U);
  const auto experts = std::ranges::find_if(
      shares, [](const MuonShare& share) { return share.states.group == AxisGroup::kExpertData; });
  ASSERT_NE(experts, shares.end());
  // Four experts in each of two layers, gate and up packed, and down.
  EXPECT_EQ(experts->of_busiest.size(), 4U * 2 * 2);
  EXPECT_EQ(experts->states.elements, experts->states.updated);
}

}  // namespace
}  // namespace stepcast
