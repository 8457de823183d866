// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's and torchtitan's settings as their users write them, and the rank map.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "model/import_native.h"
#include "recipes/deepspeed.h"
#include "recipes/export.h"
#include "recipes/has.h"
#include "recipes/import.h"
#include "recipes/torchtitan.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::has;

ImportInput input_of(const std::string& text, std::optional<std::int64_t> gpus) {
  ImportInput input;
  input.text = text;
  input.file = "settings";
  input.gpus = gpus;
  input.models_folder = testing::source_folders().models;
  return input;
}

SortedJson deepspeed(const std::string& text, std::optional<std::int64_t> gpus = 16) {
  const ImportedScenario imported = read_deepspeed(input_of(text, gpus));
  EXPECT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  return scenario_document(imported);
}

std::string deepspeed_errors(const std::string& text, std::optional<std::int64_t> gpus = 16) {
  return to_string(read_deepspeed(input_of(text, gpus)).errors);
}

TEST(DeepSpeedImport, TwoBatchSizesGiveTheThird) {
  const SortedJson a =
      deepspeed(R"({"train_batch_size": 128, "train_micro_batch_size_per_gpu": 2})");
  EXPECT_EQ(a["training"]["global_batch"], 128);
  EXPECT_EQ(a["layout"]["micro_batch"], 2);
  const SortedJson b =
      deepspeed(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})");
  EXPECT_EQ(b["training"]["global_batch"], 2 * 4 * 16);
  const SortedJson c = deepspeed(R"({"train_batch_size": 128, "gradient_accumulation_steps": 2})");
  EXPECT_EQ(c["layout"]["micro_batch"], 4);
}

TEST(DeepSpeedImport, BatchSizesThatContradictTheGpusAreRefused) {
  const char* text = R"({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 2,
                         "gradient_accumulation_steps": 4})";
  EXPECT_TRUE(has(deepspeed_errors(text), "96 is not 2 * 4 * 16"));
  EXPECT_EQ(deepspeed_errors(text, 12), "");
  EXPECT_TRUE(
      has(deepspeed_errors(R"({"train_micro_batch_size_per_gpu": 2})", std::nullopt), "--cluster"));
}

// 2^40 is the largest count that is read; a product of two is beyond 63 bits.
TEST(DeepSpeedImport, ProductsBeyondAnIntegerAreRefusedAsAnyOther) {
  const std::string most = "1099511627776";
  const std::string sizes = R"("train_micro_batch_size_per_gpu": )" + most +
                            R"(, "gradient_accumulation_steps": )" + most;
  for (const std::optional<std::int64_t> gpus : {std::optional<std::int64_t>(), {16}}) {
    EXPECT_TRUE(
        has(deepspeed_errors(R"({"train_batch_size": 1, )" + sizes + "}", gpus), "1 is not"));
  }
  const SortedJson out = deepspeed("{" + sizes + "}");
  EXPECT_GT(out["training"]["global_batch"].get<std::int64_t>(), std::int64_t{1} << 60);
  EXPECT_EQ(deepspeed_errors(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
      "tensor_parallel": {"autotp_size": )" +
                             most + R"(}, "pipeline": {"stages": )" + most + "}}"),
            "");  // the layout's own check names them
}

TEST(DeepSpeedImport, ZeroPrecisionAndOffload) {
  const SortedJson out = deepspeed(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": true}, "gradient_clipping": 1.0, "communication_data_type": "fp32",
    "zero_optimization": {"stage": 3, "overlap_comm": false, "reduce_bucket_size": 2e8,
      "offload_optimizer": {"device": "cpu", "ratio": 0.5}, "offload_param": {"device": "none"},
      "stage3_prefetch_bucket_size": 0}})");
  EXPECT_EQ(out["layout"]["zero"], 3);
  EXPECT_EQ(out["layout"]["overlap"]["param_gather"], false);
  EXPECT_EQ(out["layout"]["offload"], SortedJson({{"optimizer", 0.5}}));
  EXPECT_EQ(out["training"]["bucket_elements"], 200000000);
  EXPECT_EQ(out["training"]["prefetch_units"], 0);
  EXPECT_EQ(out["training"]["reduce_precision"], "fp32");
  EXPECT_EQ(out["training"]["grad_clip"], "global");
}

TEST(DeepSpeedImport, StatesOnDisks) {
  const SortedJson out = deepspeed(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": true}, "optimizer": {"type": "SGD"},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/d"},
      "offload_param": {"device": "nvme", "nvme_path": "/d"}}})");
  EXPECT_EQ(out["layout"]["offload"], SortedJson({{"optimizer", 1.0},
                                                  {"optimizer_device", "nvme"},
                                                  {"parameters", 1.0},
                                                  {"parameter_device", "nvme"}}));
  EXPECT_EQ(out["training"]["optimizer"], "sgd");
}

TEST(DeepSpeedImport, TakesMuonAndNamesWhatItRefusesWithIt) {
  const auto read = [](const std::string& zero, const std::string& parameters) {
    return read_deepspeed(input_of(R"({"train_batch_size": 64, "optimizer": {"type": "Muon",
        "params": )" + parameters + R"(}, "zero_optimization": )" +
                                       zero + "}",
                                   16));
  };
  const ImportedScenario whole =
      read(R"({"stage": 3, "reduce_scatter": false})", R"({"muon_lr": 0.02, "adam_lr": 3e-4})");
  EXPECT_TRUE(whole.errors.empty()) << to_string(whole.errors);
  EXPECT_EQ(json_text(SortedJson(whole.warnings)), "[]");
  EXPECT_EQ(
      deepspeed(
          R"({"train_batch_size": 64, "optimizer": {"type": "muon"}})")["training"]["optimizer"],
      "muon");
  EXPECT_TRUE(has(json_text(SortedJson(read(R"({"stage": 3})", "{}").warnings)), "reduce_scatter"));
  EXPECT_TRUE(
      has(json_text(SortedJson(read(R"({"stage": 2})", R"({"ns_method": "standard"})").warnings)),
          "optimizer.params.ns_method"));
}

TEST(DeepSpeedImport, AutoIsTheTrainersAndUnknownKeysAreNamed) {
  const ImportedScenario out = read_deepspeed(input_of(
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
          "bf16": {"enabled": "auto"}, "scheduler": {"type": "WarmupLR"}, "steps_per_print": 5,
          "zero_optimization": {"stage": 2, "zero_quantized_weights": true, "new_key": 1}})",
      16));
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  const std::string warnings = json_text(SortedJson(out.warnings));
  EXPECT_TRUE(has(warnings, "--global-batch"));
  EXPECT_TRUE(has(warnings, "zero_optimization.zero_quantized_weights"));
  EXPECT_TRUE(has(warnings, "zero_optimization.new_key"));
  EXPECT_EQ(SortedJson(out.without_effect), SortedJson({"scheduler", "steps_per_print"}));
}

TEST(DeepSpeedImport, WrongTypesAndContradictionsAreNamedByKey) {
  EXPECT_TRUE(has(deepspeed_errors(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})"),
                  "fp16.enabled"));
  EXPECT_TRUE(has(deepspeed_errors(R"({"zero_optimization": {"stage": "two"}})"),
                  "zero_optimization.stage"));
  EXPECT_TRUE(has(deepspeed_errors(R"({"optimizer": {"type": "Lion"}})"), "optimizer.type"));
  EXPECT_TRUE(has(deepspeed_errors("[1]"), "not a JSON object"));
}

SortedJson torchtitan(const std::string& text, std::optional<std::int64_t> gpus = 64) {
  const ImportedScenario imported = read_torchtitan(input_of(text, gpus));
  EXPECT_TRUE(imported.errors.empty()) << to_string(imported.errors);
  return scenario_document(imported);
}

std::string torchtitan_errors(const std::string& text, std::optional<std::int64_t> gpus = 64) {
  return to_string(read_torchtitan(input_of(text, gpus)).errors);
}

TEST(TorchtitanImport, DegreesBatchAndCheckpointing) {
  const SortedJson out = torchtitan(R"(
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[compile]
enable = true
)");
  EXPECT_EQ(out["model"], "llama-3.1-70b");
  EXPECT_EQ(out["layout"]["dp"], 8);           // 64 / 8
  EXPECT_EQ(out["layout"]["shard_group"], 4);  // two copies
  EXPECT_EQ(out["layout"]["zero"], 3);
  EXPECT_EQ(out["training"]["global_batch"], 16);
  EXPECT_EQ(out["layout"]["recompute"]["modules"], SortedJson({"torchtitan_op"}));
  EXPECT_EQ(out["layout"]["overlap"]["tp"], true);
}

TEST(TorchtitanImport, APipelineHasItsOwnMicroBatchAndKeepsParameters) {
  const SortedJson out = torchtitan(R"(
[model]
name = "llama3"
flavor = "405B"
[training]
local_batch_size = 32
global_batch_size = 64
seq_len = 8192
[parallelism]
tensor_parallel_degree = 8
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_layers_per_stage = 16
pipeline_parallel_microbatch_size = 2
[activation_checkpoint]
mode = "full"
)");
  EXPECT_EQ(out["layout"]["micro_batch"], 2);
  EXPECT_EQ(out["layout"]["virtual_stages"], 2);  // ceil((126 + 2) / 16) = 8 chunks
  EXPECT_EQ(out["layout"]["account_for_embedding"], true);
  EXPECT_EQ(out["layout"]["zero"], 2);
}

// The type in which the model is made, of which FSDP's states and gradients are, and checkpoints.
TEST(TorchtitanImport, TypesOfStatesAndCheckpointsThatStopEarlyGoOutAndIn) {
  const SortedJson read = torchtitan(R"({
    "training": {"global_batch_size": 64, "local_batch_size": 1, "dtype": "bfloat16"},
    "activation_checkpoint": {"mode": "full", "early_stop": true}})");
  EXPECT_EQ(read["training"]["master_precision"], "bf16");
  EXPECT_EQ(read["training"]["reduce_precision"], "fp32");
  EXPECT_EQ(read["training"]["early_stop"], true);
  const SortedJson plain = torchtitan(R"({
    "training": {"global_batch_size": 64, "local_batch_size": 1, "dtype": "float32"}})");
  EXPECT_FALSE(plain["training"].contains("master_precision"));
  EXPECT_FALSE(plain["training"].contains("early_stop"));

  testing::GptCase c;
  c.framework = "fsdp";
  c.zero = 2;
  c.dp = 2;
  c.recompute = "full";
  c.extra_training =
      R"(, "master_precision": "bf16", "reduce_precision": "fp32", "early_stop": true)";
  const std::string written = write_torchtitan(testing::gpt(c), {}, "");
  EXPECT_TRUE(has(written, "dtype = \"bfloat16\"")) << written;
  EXPECT_TRUE(has(written, "early_stop = true")) << written;
  Scenario chosen = testing::gpt(c);
  chosen.layout.recompute.mode = RecomputeMode::kSelective;
  chosen.layout.recompute.modules.named = {RecomputedModule::kOperations};
  const std::string by_operation = write_torchtitan(chosen, {}, "");
  EXPECT_TRUE(has(by_operation, "selective_ac_option = \"op\"")) << by_operation;
  EXPECT_TRUE(has(by_operation, "early_stop = true")) << by_operation;
}

TEST(TorchtitanImport, ThePrintedJsonIsReadAsTheTomlIs) {
  const SortedJson out = torchtitan(R"({"parallelism": {"tensor_parallel_degree": 4},
    "training": {"global_batch_size": 64, "local_batch_size": 1, "seq_len": 4096},
    "activation_checkpoint": {"mode": "none"}})");
  EXPECT_EQ(out["layout"]["tp"], 4);
  EXPECT_EQ(out["layout"]["recompute"], "none");
}

TEST(TorchtitanImport, DegreesWhoseProductIsNoIntegerDoNotStopTheProgram) {
  const std::string most = " = 1099511627776\n";
  EXPECT_EQ(torchtitan_errors("[training]\nglobal_batch_size = 64\n[parallelism]\n"
                              "tensor_parallel_degree" +
                              most + "pipeline_parallel_degree" + most + "context_parallel_degree" +
                              most),
            "");
  EXPECT_TRUE(has(torchtitan_errors("[training]\nglobal_batch_size = 1e300\n"),
                  "training.global_batch_size"));
}

TEST(TorchtitanImport, ErrorsNameTheKeyOrTheLine) {
  EXPECT_TRUE(has(torchtitan_errors("[training\n"), "line 1"));
  EXPECT_TRUE(has(torchtitan_errors("[parallelism]\ntensor_parallel_degree = 0\n"),
                  "parallelism.tensor_parallel_degree"));
  EXPECT_TRUE(has(torchtitan_errors("[parallelism]\npipeline_parallel_degree = 2\n"
                                    "pipeline_parallel_schedule = \"1F1b\"\n"),
                  "did you mean '1F1B'"));
  EXPECT_TRUE(has(torchtitan_errors("[optimizer]\nname = \"Muon\"\n"), "optimizer.name"));
}

TEST(RankMap, FollowsTheOrderOfTheGrid) {
  const std::string stated =
      R"({"stepcast": 1, "model": "gpt3-13b", "cluster": "dgx-a100-80gx2",
          "training": {"global_batch": 64}, "layout": {"tp": 2, "pp": 4}})";
  const Scenario scenario = testing::scenario_from(stated);
  const auto map = export_scenario(scenario, stated, "rankmap", {.rank_map_as_json = true},
                                   testing::source_folders());
  ASSERT_TRUE(map);
  const SortedJson ranks = SortedJson::parse(map->files[0].text)["ranks"];
  ASSERT_EQ(ranks.size(), 16u);
  // tp fastest, then dp (2), pp slowest: rank 11 = tp 1 + 2 * (dp 1 + 2 * pp 2).
  EXPECT_EQ(
      ranks[11],
      SortedJson(
          {{"rank", 11}, {"node", 1}, {"gpu", 3}, {"tp", 1}, {"cp", 0}, {"dp", 1}, {"pp", 2}}));
  const auto csv = export_scenario(scenario, stated, "rankmap", {}, testing::source_folders());
  EXPECT_EQ(std::count(csv->files[0].text.begin(), csv->files[0].text.end(), '\n'), 17);
}

TEST(RankMap, ExpertsRegroupTheRanksOfAStage) {
  const std::string stated =
      R"({"stepcast": 1, "model": "mixtral-8x7b", "cluster": "dgx-h100x2",
          "training": {"global_batch": 64}, "layout": {"tp": 2, "pp": 2, "ep": 4, "etp": 1}})";
  const auto document = JsonDocument::parse(stated, "");
  const auto scenario = read_legal_scenario(**document, testing::source_folders());
  ASSERT_TRUE(scenario) << to_string(scenario.error());
  const auto map = export_scenario(*scenario, stated, "rankmap", {.rank_map_as_json = true},
                                   testing::source_folders());
  const SortedJson ranks = SortedJson::parse(map->files[0].text)["ranks"];
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(ranks[rank]["ep"], rank % 8 % 4) << rank;
}

// Line feed, carriage return, NEL and the separator of lines each end a line somewhere.
TEST(Export, ANameCannotEndTheCommentThatHoldsIt) {
  AtLeast scripts(3 * 6 * 2);  // of torchrun and of Slurm, by framework and end
  for (const char* framework : {"megatron", "deepspeed", "fsdp"}) {
    SortedJson document = {{"stepcast", 1},
                           {"model", "gpt3-13b"},
                           {"cluster", "dgx-a100-80gx2"},
                           {"training", {{"global_batch", 64}, {"framework", framework}}},
                           {"layout", {{"tp", 2}}}};
    const SortedJson model = to_native_json(testing::scenario_from(json_text(document)).model);
    for (const char* end : {"\n", "\r", "\x7F", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
      document["model"] = model;
      document["model"]["name"] = std::string("m") + end + "touch model";
      const std::string stated = json_text(document);
      Scenario scenario = testing::scenario_from(stated);
      scenario.cluster.spec.name = std::string("c") + end + "touch cluster";
      for (const auto target : {"torchrun", "slurm", "kubernetes"}) {
        const auto out = export_scenario(scenario, stated, target, {}, testing::source_folders());
        ASSERT_TRUE(out) << to_string(out.error());
        for (const LaunchFile& file : out->files) {
          EXPECT_FALSE(has(file.text, std::string(end) + "touch")) << file.text;
          if (file.name.ends_with(".sh") || file.name.ends_with(".sbatch")) {
            ++scripts;
            EXPECT_TRUE(has(file.text, "# m touch model on 16"));
          }
        }
      }
    }
  }
}

TEST(Export, NamesWhatARunNeedsThatNoScenarioSays) {
  AtLeast scripts(3);
  const auto exported = [](const char* model, const char* framework) {
    const std::string stated =
        json_text(SortedJson{{"stepcast", 1},
                             {"model", model},
                             {"cluster", "dgx-h100x16"},
                             {"training", {{"global_batch", 128}, {"framework", framework}}}});
    return *export_scenario(testing::scenario_from(stated), stated, "torchrun", {},
                            testing::source_folders());
  };
  for (const char* framework : {"megatron", "deepspeed", "fsdp"}) {
    const Exported out = exported("llama-3.1-8b", framework);
    for (const char* what : {"learning rate and its schedule", "the data", "checkpoints"}) {
      EXPECT_TRUE(std::ranges::any_of(
          out.left_open, [&](const std::string& one) { return has(one, what); }))
          << framework << " " << what;
    }
    EXPECT_TRUE(has(out.files[0].text, "# No scenario says, set for a real run: the learning"));
    ++scripts;
  }
  const auto says_router = [](const Exported& out) {
    return std::ranges::any_of(out.left_open, [](const std::string& one) {
      return has(one, "--moe-router-num-groups") && has(one, "--moe-router-topk-scaling-factor");
    });
  };
  EXPECT_TRUE(says_router(exported("mixtral-8x7b", "megatron")));
  EXPECT_FALSE(says_router(exported("llama-3.1-8b", "megatron")));
}

// A rack of GB200 NVL72 has 18 nodes of 4 GPUs, and 20 nodes stand in two racks of 10.
TEST(Export, AsksForTheRacksThatTheForecastFills) {
  const auto script = [](int nodes) {
    const std::string stated =
        json_text(SortedJson{{"stepcast", 1},
                             {"model", "llama-3.1-8b"},
                             {"cluster", "gb200-nvl72x" + std::to_string(nodes)},
                             {"training", {{"global_batch", 4 * nodes}}}});
    return export_scenario(testing::scenario_from(stated), stated, "slurm", {},
                           testing::source_folders())
        ->files[0]
        .text;
  };
  EXPECT_TRUE(has(script(8), "#SBATCH --segment=8\n"));
  EXPECT_TRUE(has(script(36), "#SBATCH --segment=18\n"));
  EXPECT_TRUE(has(script(20), "#SBATCH --segment=10\n"));
  EXPECT_FALSE(has(script(1), "--segment"));
}

TEST(Export, NamesWhatATargetCannotLaunch) {
  const std::string stated =
      R"({"stepcast": 1, "model": "gpt3-13b", "cluster": {"base": "dgx-a100-80g", "gpus": 12},
          "training": {"global_batch": 48}, "layout": {"schedule": "gpipe", "pp": 4}})";
  const Scenario scenario = testing::scenario_from(stated);
  const auto errors = [&](const char* target) {
    const auto out = export_scenario(scenario, stated, target, {}, testing::source_folders());
    return out ? std::string() : to_string(out.error());
  };
  EXPECT_TRUE(has(errors("torchtitan"), "--to megatron, or --framework fsdp"));
  EXPECT_TRUE(has(errors("megatron"), "12 GPUs on 2 nodes"));
}

TEST(Export, AScheduleWithoutAWordIsRefusedByName) {
  const std::string stated =
      R"({"stepcast": 1, "model": "gpt3-13b", "cluster": "dgx-a100-80gx2",
          "training": {"global_batch": 64}, "layout": {"schedule": "gpipe", "pp": 4}})";
  const Scenario scenario = testing::scenario_from(stated);
  const auto out = export_scenario(scenario, stated, "slurm", {}, testing::source_folders());
  ASSERT_FALSE(out);
  EXPECT_EQ(to_string(out.error()[0]),
            "layout.schedule: \"gpipe\" cannot be said in Megatron-LM (choose a value that it has "
            "a word for)");
}

}  // namespace
}  // namespace stepcast
