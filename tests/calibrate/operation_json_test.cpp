// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/operation_json.h"

#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "operation/signature.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

Operation again(const Operation& operation, OperationNames& names) {
  // Through text, as a journal keeps it.
  auto document = JsonDocument::parse(json_text(operation_json(operation)), "operation.json");
  EXPECT_TRUE(document.has_value());
  Operation out = read_operation((*document)->root(), names);
  EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
  return out;
}

void expect_same(const Collective& a, const Collective& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.overlapped, b.overlapped);
  EXPECT_EQ(a.purpose, b.purpose);
}

// Compares what the signature leaves out; it holds every other field, bytes as the shortest text
// that reads back as the same number.
void expect_same(const Operation& a, const Operation& b) {
  EXPECT_STREQ(a.name, b.name);
  EXPECT_EQ(a.phase, b.phase);
  ASSERT_EQ(a.work.index(), b.work.index());
  EXPECT_EQ(signature(a), signature(b));
  if (const auto kernel = memory_bound(a.work)) {
    EXPECT_EQ(kernel->launches, memory_bound(b.work)->launches);
    EXPECT_EQ(kernel->bytes, memory_bound(b.work)->bytes);
  }
  if (const auto* collective = std::get_if<Collective>(&a.work)) {
    expect_same(*collective, std::get<Collective>(b.work));
  }
}

int expect_round_trips(const Program& program) {
  OperationNames names;
  int count = 0;
  for_each_operation(program, [&](const Operation& operation) {
    expect_same(operation, again(operation, names));
    ++count;
  });
  return count;
}

TEST(OperationJson, IsExactForAllOfAGpt) {
  GptCase c;
  c.tp = 2;
  c.recompute = "full";
  c.sequence_parallel = true;
  EXPECT_GT(expect_round_trips(lower(gpt(c))), 50);
}

TEST(OperationJson, IsExactForAllOfAGptInSinglePrecisionWithFlashAttention) {
  GptCase c;
  c.precision = "fp32";
  c.attention = "flash";
  c.framework = "native";
  c.zero = 2;
  c.dp = 2;
  EXPECT_GT(expect_round_trips(lower(gpt(c))), 30);
}

TEST(OperationJson, IsExactForAllOfALlama) {
  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-70b", "cluster": {"base": "dgx-h100", "nodes": 8},
          "training": {"global_batch": 512, "sequence_length": 8192},
          "layout": {"tp": 8, "pp": 4, "dp": 2}})");
  EXPECT_GT(expect_round_trips(lower(scenario)), 30);
}

TEST(OperationJson, KeepsBytesThatAreNoWholeNumber) {
  OperationNames names;
  const Operation operation{
      "odd", Phase::kForward, Dropout{true, DataType::kBf16, {3, 3, 0.1 + 0.2, 2}}, {}, {}};
  EXPECT_EQ(memory_bound(again(operation, names).work)->bytes, 0.1 + 0.2);
}

TEST(OperationJson, TellsWhatIsMissingAndWhatIsUnknown) {
  OperationNames names;
  auto document = JsonDocument::parse(
      R"({"work": "attention", "name": "a", "phase": "forward", "backward": false, "batch": 1,
          "heads": 1, "kv_heads": 1, "query_length": 8, "head_dim": 8, "causal": true,
          "type": "fp33"})",
      "operation.json");
  read_operation((*document)->root(), names);
  const std::string text = to_string((*document)->errors());
  EXPECT_EQ((*document)->errors().size(), 2u) << text;
  EXPECT_NE(text.find("key_length"), std::string::npos) << text;
  EXPECT_NE(text.find("fp33"), std::string::npos) << text;
}

TEST(OperationNames, KeepOneCopyOfEach) {
  OperationNames names;
  const char* first = names.keep("qkv");
  for (int i = 0; i < 100; ++i) names.keep("other" + std::to_string(i));
  EXPECT_EQ(names.keep("qkv"), first);
  EXPECT_STREQ(first, "qkv");
}

}  // namespace
}  // namespace stepcast
