// SPDX-License-Identifier: Apache-2.0
#include "layout/framework.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/result.h"
#include "core/text/escape.h"
#include "layout/bad_scenarios.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "places.h"

namespace stepcast {
namespace {

DataFolders shipped() {
  const std::string root = source_folder();
  return {root + "/models", root + "/topologies", root + "/profiles"};
}

Result<Scenario> read_text(const std::string& text) {
  auto document = JsonDocument::parse(text, "scenario.json");
  if (!document) return failure(document.error());
  return read_scenario(**document, shipped());
}

Scenario read_good(const char* patch) {
  auto scenario = read_text(testing::patched(patch));
  if (!scenario) {
    ADD_FAILURE() << to_string(scenario.error());
    return {};
  }
  return std::move(*scenario);
}

class BadScenarios : public ::testing::TestWithParam<testing::BadScenario> {};

TEST_P(BadScenarios, IsRefusedNamingThePathAndWhatIsAccepted) {
  const testing::BadScenario& bad = GetParam();
  const auto scenario = read_text(bad.text);
  ASSERT_FALSE(scenario.has_value());
  const bool named = std::ranges::any_of(scenario.error(), [&](const Error& error) {
    const std::string said = error.message + " " + error.hint;
    return error.path == bad.path && error.code == bad.code && error.file == "scenario.json" &&
           said.find(bad.words) != std::string::npos;
  });
  EXPECT_TRUE(named) << "wanted " << bad.path << " (code " << static_cast<int>(bad.code)
                     << "): " << bad.words << "\ngot " << to_string(scenario.error());
}

// One mistake gives one message: no rule may speak about a value that is already refused.
TEST_P(BadScenarios, GivesOneErrorForOneMistake) {
  const auto scenario = read_text(GetParam().text);
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(scenario.error().size(), 1u) << to_string(scenario.error());
}

std::string test_name(const ::testing::TestParamInfo<testing::BadScenario>& tested) {
  std::string name = tested.param.path + "_" + tested.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, BadScenarios, ::testing::ValuesIn(testing::bad_scenarios()),
                         test_name);

TEST(Scenario, ABatchOfTokensWithoutALengthIsRefusedForBoth) {
  const auto document = JsonDocument::parse(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100",
          "training": {"global_batch": 4194304, "sequence_length": 0}})",
      "tokens.json");
  const auto scenario = read_scenario(**document, testing::source_folders());
  ASSERT_FALSE(scenario.has_value());
  EXPECT_NE(to_string(scenario.error()).find("training.sequence_length"), std::string::npos);
}

TEST(BadScenarioTable, HasSixtyDifferentCases) {
  std::set<std::string> texts;
  for (const auto& bad : testing::bad_scenarios()) texts.insert(bad.text);
  EXPECT_GE(texts.size(), 60u);
  EXPECT_EQ(texts.size(), testing::bad_scenarios().size());
}

TEST(Scenario, ListsAllErrorsOfAFile) {
  const auto scenario = read_text(testing::patched(R"({
    "training": {"global_batch": "x", "precisoin": "bf16"},
    "layout": {"tp": 3, "schedule": "interleaved", "overlap": {"pp": 1}}})"));
  ASSERT_FALSE(scenario.has_value());
  std::set<std::string> paths;
  for (const Error& error : scenario.error()) paths.insert(error.path);
  EXPECT_EQ(paths,
            (std::set<std::string>{"training.global_batch", "training.precisoin", "layout.tp",
                                   "layout.virtual_stages", "layout.overlap.pp"}))
      << to_string(scenario.error());
}

TEST(Scenario, HugeDegreesOverflowNothing) {
  const auto scenario = read_text(testing::patched(R"({"layout": {"tp": 1048576, "pp": 1048576,
      "cp": 1048576, "dp": 1048576, "ep": 1048576, "etp": 1048576, "micro_batch": 1048576,
      "virtual_stages": 1048576, "schedule": "interleaved", "shard_group": 1048576}})"));
  ASSERT_FALSE(scenario.has_value());
  for (const Error& error : scenario.error()) EXPECT_TRUE(error.path.starts_with("layout."));
}

TEST(Scenario, FillsTheDefaultsOfSectionFive) {
  const Scenario s = read_good(R"({"layout": null, "training": {"sequence_length": null}})");
  EXPECT_EQ(s.training.sequence_length, 4096);  // the model's 8192, at most 4096
  EXPECT_EQ(s.training.precision, DataType::kBf16);
  EXPECT_EQ(s.training.attention, AttentionKernel::kFlash);
  EXPECT_EQ(s.training.framework, framework_named("megatron"));
  EXPECT_EQ(s.training.grad_clip, GradClip::kGlobal);
  EXPECT_EQ(s.layout.tp, 1);
  EXPECT_EQ(s.layout.dp, 64);
  EXPECT_EQ(s.layout.schedule, schedule_named("1f1b"));
  EXPECT_EQ(s.layout.zero, 1);
  EXPECT_FALSE(s.layout.sequence_parallel);
  EXPECT_EQ(s.layout.recompute.mode, RecomputeMode::kNone);
  EXPECT_EQ(s.layout.order, "tp-cp-ep-dp-pp");
  EXPECT_EQ(s.micro_batches(), 2);  // 128 / (1 * 64)
}

TEST(Scenario, TensorParallelismBringsSequenceParallelism) {
  EXPECT_TRUE(read_good("{}").layout.sequence_parallel);
  EXPECT_FALSE(read_good(R"({"layout": {"sequence_parallel": false}})").layout.sequence_parallel);
}

TEST(Scenario, ZeroThreeWithoutModelParallelismMeansFsdp) {
  const Scenario s = read_good(R"({"layout": {"zero": 3, "tp": 1, "pp": 1}})");
  EXPECT_EQ(s.training.framework, framework_named("fsdp"));
  EXPECT_FALSE(s.rules.keeps_master_weights);
  EXPECT_FALSE(s.rules.bf16_parameters);
}

TEST(Scenario, PlainSelectiveRecomputesCoreAttention) {
  const Scenario s = read_good(R"({"layout": {"recompute": "selective"}})");
  EXPECT_EQ(s.layout.recompute.modules.named, std::vector{RecomputedModule::kCoreAttention});
}

TEST(Scenario, AShardGroupOfAllReplicasIsPlainSharding) {
  EXPECT_EQ(read_good(R"({"layout": {"shard_group": 4}})").layout.shard_group, 0);
  EXPECT_EQ(read_good(R"({"layout": {"shard_group": "all"}})").layout.shard_group, 0);
}

TEST(Scenario, AWindowAsLongAsTheSequenceIsFullAttention) {
  EXPECT_EQ(read_good(R"({"model": {"attention_window": 4096}})").model.attention_window, 4096);
}

TEST(Scenario, KeyValueHeadsBelowTpAreReplicated) {
  EXPECT_EQ(read_good(R"({"layout": {"tp": 16, "pp": 1}})").layout.tp, 16);  // 8 kv heads
}

// The vocabulary is padded to 128 x tp in Megatron and in this project's executor, and left alone
// (a multiple of tp) in FSDP.
TEST(Scenario, VocabularyIsPaddedAsTheFrameworkPads) {
  EXPECT_EQ(read_good(R"({"model": {"vocab": 50257}})").padded_vocab(), 50688);  // 99 * 512
  EXPECT_EQ(read_good(R"({"model": {"vocab": 50257},
                          "training": {"framework": "fsdp"}, "layout": {"pp": 1}})")
                .padded_vocab(),
            50260);
  EXPECT_EQ(read_good(R"({"model": {"vocab": 50257}, "training": {"framework": "native"}})")
                .padded_vocab(),
            50688);
  EXPECT_EQ(read_good(R"({"model": {"vocab": 50257, "vocab_multiple": 64}})").padded_vocab(),
            50432);  // 197 * 256
}

TEST(Scenario, KeysOverrideTheRulesOfTheFramework) {
  const Scenario s = read_good(R"({"training": {"bucket_elements": 7, "prefetch_units": 0,
      "host_sync_after_p2p": false, "host_sync_at_batch": true,
      "fused_gradient_accumulation": false,
      "scatter_gather_p2p": true}})");
  EXPECT_EQ(s.rules.bucket_elements, 7);
  EXPECT_EQ(s.rules.prefetch_units, 0);
  EXPECT_FALSE(s.rules.host_sync_after_p2p);
  EXPECT_TRUE(s.rules.host_sync_at_batch);
  EXPECT_FALSE(s.rules.fused_gradient_accumulation);
  EXPECT_TRUE(s.rules.scatter_gather_p2p);
}

TEST(Scenario, TheObjectsForLaterVerbsAreAccepted) {
  read_good(R"({"run": {"tokens": 15e12, "price_per_gpu_hour": 2.5, "deadline": "30 d",
                        "budget": 1e7, "failures_per_node_day": 0.001, "restart": "10 min",
                        "checkpoint": {"bytes": "1 TB", "bandwidth": "40 GB/s"}},
                "plan": {"objective": "cost", "clusters": ["dgx-h100x8", {"base": "dgx-h200"}],
                         "max_gpus": 64, "memory_margin": 0.05}})");
}

TEST(Scenario, AdaptersHaveRank16UnlessStated) {
  EXPECT_EQ(read_good("{}").training.lora_rank, 0);
  EXPECT_EQ(read_good(R"({"training": {"mode": "lora"}})").training.lora_rank, 16);
  EXPECT_EQ(read_good(R"({"training": {"mode": "qlora", "lora_rank": 64}})").training.lora_rank,
            64);
}

// Reading the resolved scenario gives the resolved scenario: nothing was left to a default.
TEST(Scenario, TheResolvedScenarioResolvesToItself) {
  for (const char* patch :
       {"{}",
        R"({"layout": {"zero": 3, "tp": 1, "pp": 1,
                          "recompute": {"mode": "full", "every": 2}}})",
        R"({"run": {"tokens": 15e12, "price_per_gpu_hour": 2.5, "deadline": "30 d", "budget": 1e7,
                    "failures_per_node_day": 0.001, "failures_per_day": 0.5, "restart": "10 min",
                    "checkpoint": {"bytes": "1 TB", "bandwidth": "40 GB/s", "interval": "1 h"},
                    "spare_nodes": 2, "repair": "1 d", "pue": 1.2,
                    "stragglers": {"per_node_day": 0.01, "slowdown": 0.3, "detection": "1 h"},
                    "preemption": {"per_node_day": 0.2, "notice": "2 min"}}})",
        R"({"training": {"mode": "qlora", "lora_rank": 64}})",
        R"({"training": {"framework": "deepspeed", "precision": "fp16", "software": "x"},
               "layout": {"schedule": "gpipe", "stage_layers": [7, 9, 9, 7],
                          "order": "pp-dp-ep-cp-tp"},
               "profile": "none"})",
        R"({"cluster": {"gpus": 60, "nodes": null, "nic": "200 Gb/s"},
               "training": {"framework": "native", "precision": "fp32", "global_batch": 60},
               "layout": {"dp": 5, "pp": 3, "recompute": "selective"}})"}) {
    const SortedJson first = to_json(read_good(patch));
    const auto second = read_text(json_text(first));
    ASSERT_TRUE(second.has_value()) << to_string(second.error());
    EXPECT_EQ(to_json(*second), first);
  }
}

}  // namespace
}  // namespace stepcast
