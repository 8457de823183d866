// SPDX-License-Identifier: Apache-2.0
// Attention over a sequence that c ranks share, against docs/context-parallel.md. s sequence, b
// micro-batch, a heads, g key-value heads, d head dimension; KV = 2 b (s/c) g d elements.
#include <gtest/gtest.h>

#include <string>

#include "program/decoder_layer.h"
#include "program/executable.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;

constexpr std::int64_t kSequence = 4096, kHeads = 16, kKvHeads = 4, kHeadDim = 64;

struct CutCase {
  std::string method = "ring";
  int cp = 4, dp = 2, tp = 1, zero = 1;
  std::string more_training = "", base = "dgx-h100";
  std::string cluster = "";
};

Scenario cut(const CutCase& c) {
  const auto n = [](int value) { return std::to_string(value); };
  return scenario_from(
      R"({"stepcast": 1, "model": {"layers": 2, "hidden": 1024, "heads": 16, "kv_heads": 4,
          "ffn": 2048, "vocab": 1024, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "tied_embeddings": false, "biases": false, "vocab_multiple": 1},
          "cluster": {"base": ")" +
      c.base + R"(", "gpus": )" + n(c.cp * c.dp * c.tp) +
      R"(}, "training": {"global_batch": 8, "sequence_length": 4096)" + c.more_training +
      R"(}, "layout": {"tp": )" + n(c.tp) + R"(, "cp": )" + n(c.cp) + R"(, "dp": )" + n(c.dp) +
      R"(, "zero": )" + n(c.zero) + R"(, "cp_method": ")" + c.method + R"("}})");
}

Block layer(const CutCase& c, RecomputeMode mode = RecomputeMode::kNone) {
  return lower_decoder_layer(cut(c), mode);
}

double attention_flops(const Block& block, Pass pass) {
  double sum = 0;
  for (const Operation& operation : block.pass(pass).operations) {
    if (std::holds_alternative<Attention>(operation.work)) sum += flops_of(operation).value();
  }
  return sum;
}

struct Moved {
  std::int64_t messages = 0;
  ByteCount bytes = 0;
  std::int64_t beside = 0;  // messages on a stream of their own
};
Moved moved(const Block& block, Pass pass, CollectiveKind kind) {
  Moved out;
  for (const Operation& operation : block.pass(pass).operations) {
    const auto* call = std::get_if<Collective>(&operation.work);
    if (call == nullptr || call->kind != kind || !call->group.spans(Axis::kCp)) continue;
    ++out.messages;
    out.bytes += call->bytes;
    out.beside += operation.stream == BlockStream::kCommunication;
  }
  return out;
}

ByteCount key_value_bytes(std::int64_t cp) {
  return 2 * (kSequence / cp) * kKvHeads * kHeadDim * 2;
}

// Every rank computes 1/c of the causal half, whatever the method: b a 2 d s^2 / c, and 2.5 of it
// backward.
TEST(ContextParallel, SharesCausalAttentionEvenly) {
  for (const std::string method : {"ring", "all_gather", "all_to_all", "hierarchical"}) {
    for (const int cp : {2, 4}) {
      // Pairs that exchange heads, and two pairs in a ring.
      const bool in_pairs = method == "hierarchical";
      if (in_pairs && cp == 2) continue;
      const int tp = in_pairs ? 2 : 1;
      const double whole = 2.0 * kHeads / tp * kHeadDim * kSequence * kSequence;
      const Block block = layer({.method = method, .cp = cp, .tp = tp});
      EXPECT_DOUBLE_EQ(attention_flops(block, Pass::kForward), whole / cp) << method << cp;
      EXPECT_DOUBLE_EQ(attention_flops(block, Pass::kBackward), 2.5 * whole / cp) << method << cp;
    }
  }
}

// c-1 messages of KV forward; backward the same number of keys and values and of their gradients,
// in c messages.
TEST(ContextParallel, OfARingSendsThreeTimesItsKeysAndValuesToEachOtherRank) {
  for (const int cp : {2, 4, 8}) {
    const Block block = layer({.cp = cp, .dp = 1});
    const ByteCount kv = key_value_bytes(cp);
    const Moved forward = moved(block, Pass::kForward, CollectiveKind::kSendReceive);
    EXPECT_EQ(forward.messages, cp - 1);
    EXPECT_EQ(forward.bytes, (cp - 1) * kv);
    EXPECT_EQ(forward.beside, cp - 1);
    const Moved backward = moved(block, Pass::kBackward, CollectiveKind::kSendReceive);
    EXPECT_EQ(backward.messages, cp);
    EXPECT_EQ(backward.bytes, 2 * (cp - 1) * kv);
  }
}

// PyTorch's ring passes on keys and values of all a query heads instead of g, a/g KV, and their
// gradients in 4 bytes instead of 2.
TEST(ContextParallel, OfPyTorchsRingSendsKeysOfAllHeadsAndGradientsInFp32) {
  for (const int cp : {2, 4}) {
    const Block block =
        layer({.cp = cp, .dp = 1, .zero = 3, .more_training = R"(, "framework": "fsdp")"});
    const ByteCount kv = key_value_bytes(cp) * kHeads / kKvHeads;
    EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kSendReceive).bytes, (cp - 1) * kv);
    EXPECT_EQ(moved(block, Pass::kBackward, CollectiveKind::kSendReceive).bytes,
              (cp - 1) * (1 + 2) * kv);
  }
}

// Bytes of its merges for an element of the context, in bf16 and fp32: the first result is cast
// (2 + 4); each later one is cast (6), and its distance from the sum is taken (4 + 4 + 4), scaled
// (4 + 4) and subtracted (4 + 4 + 4). Every second one is of half the rows, behind which both
// halves are put together (4 + 4).
TEST(ContextParallel, OfPyTorchsRingAddsResultsUpInFp32StepByStep) {
  const int cp = 4;
  const Block block =
      layer({.cp = cp, .dp = 1, .zero = 3, .more_training = R"(, "framework": "fsdp")"});
  double bytes = 0;
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    if (std::string(operation.name) == "merge_partial") {
      bytes += memory_bound(operation.work)->bytes;
    }
  }
  const double elements = kSequence / cp * kHeads * kHeadDim;
  EXPECT_DOUBLE_EQ(bytes, (6 + 38 + (38.0 / 2 + 8) + 38) * elements);
}

// All keys and values come together twice, and their gradients are summed apart: full sizes, as
// collectives count.
TEST(ContextParallel, OfAnAllGatherMovesTheWholeSequenceThreeTimes) {
  const Block block = layer({.method = "all_gather"});
  const ByteCount whole = 4 * key_value_bytes(4);
  EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kAllGather).bytes, whole);
  EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kAllGather).beside, 0);
  EXPECT_EQ(moved(block, Pass::kBackward, CollectiveKind::kAllGather).bytes, whole);
  EXPECT_EQ(moved(block, Pass::kBackward, CollectiveKind::kReduceScatter).bytes, whole);
}

// b (s/c) (a d + 2 g d + a d) elements in each direction, of which 1/c stays.
TEST(ContextParallel, OfAnAllToAllMovesQueriesAndContextToo) {
  const Block block = layer({.method = "all_to_all"});
  const ByteCount each = kSequence / 4 * (2 * kHeads + 2 * kKvHeads) * kHeadDim * 2;
  EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kAllToAll).bytes, each);
  EXPECT_EQ(moved(block, Pass::kBackward, CollectiveKind::kAllToAll).bytes, each);
  EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kAllToAll).messages, 4);
}

// Heads among the GPUs of a node, a ring of one step across: KV of the ring is that of the whole
// split.
TEST(ContextParallel, InTwoStagesExchangesInsideANodeAndSendsAcross) {
  const CutCase c{.method = "hierarchical", .cp = 8, .dp = 1, .tp = 2};
  const Scenario scenario = cut(c);
  EXPECT_EQ(scenario.layout.cp_exchange, 2);  // two of the four GPUs: 2 key-value heads a rank
  const Block block = lower_decoder_layer(scenario, RecomputeMode::kNone);
  const Moved ring = moved(block, Pass::kForward, CollectiveKind::kSendReceive);
  EXPECT_EQ(ring.messages, 3);
  EXPECT_EQ(ring.bytes, 3 * key_value_bytes(8) / 2);
  EXPECT_EQ(moved(block, Pass::kForward, CollectiveKind::kAllToAll).messages, 4);
}

// The backward reads what it would of a sequence of s/c: the ring keeps the keys and values that
// came last, beside the packed projection of which the value was a part.
TEST(ContextParallel, KeepsWhatAShorterSequenceWould) {
  Scenario shorter = cut({.cp = 1, .dp = 1});
  shorter.training.sequence_length = kSequence / 4;
  const auto saved = [](const Block& block) {
    return total(block.pass(Pass::kForward).memory.after);
  };
  const ByteCount alone = saved(lower_decoder_layer(shorter, RecomputeMode::kNone));
  EXPECT_EQ(saved(layer({.method = "all_gather"})), alone);
  const ByteCount tokens = kSequence / 4;
  const ByteCount packed = tokens * (kHeads + 2 * kKvHeads) * kHeadDim * 2;
  const ByteCount key = tokens * kKvHeads * kHeadDim * 2;
  EXPECT_EQ(saved(layer({})), alone - packed - key + key_value_bytes(4));
}

// All keys and values that a ring received stay until the layer's attention ends.
TEST(ContextParallel, ARingHoldsTheKeysOfTheWholeSequenceForAWhile) {
  const Block four = layer({});
  const ByteCount peak =
      four.pass(Pass::kForward)
          .memory.at_peak[static_cast<std::size_t>(MemoryCategory::kActivations)];
  EXPECT_GE(peak, 4 * key_value_bytes(4));
}

TEST(ContextParallel, RecomputedAttentionCountsAsItsShareOfTheWhole) {
  const Block block = layer({}, RecomputeMode::kSelective);
  double again = 0;
  for (const Operation& operation : block.pass(Pass::kBackward).operations) {
    if (operation.phase == Phase::kRecompute) again += flops_of(operation).value();
  }
  EXPECT_DOUBLE_EQ(again, attention_flops(block, Pass::kForward));
}

// Gradients and states are those of dp x cp ranks.
TEST(ContextParallel, StatesAreShardedOverDataAndContextRanks) {
  const Scenario scenario = cut({});
  const Program program = lower(scenario);
  const std::int64_t parameters = program.roles[0].parameters;
  EXPECT_EQ(program.roles[0].persistent[static_cast<std::size_t>(MemoryCategory::kOptimizer)],
            12 * (parameters / 8));
}

// Results of a ring's steps stay until they are merged. The last rank's are whole in every step, so
// a buffer has room for them, though most steps compute half of the queries or of the keys.
TEST(ContextParallel, ARingKeepsWholeResultsOfEveryStep) {
  const int cp = 4;
  const Block block = layer({.cp = cp});
  std::int64_t results = 0;
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    const auto* attention = std::get_if<Attention>(&operation.work);
    if (attention == nullptr) continue;
    ++results;
    EXPECT_EQ(attention->ring_step.value, results);
    EXPECT_EQ(block.buffers[operation.writes[0].index()].elements,
              kSequence / cp * kHeads * kHeadDim);
  }
  EXPECT_EQ(results, cp);
}

}  // namespace
}  // namespace stepcast
