// SPDX-License-Identifier: Apache-2.0
// `stepcast export` and `stepcast import`, as a user runs them.
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "cli/program.h"
#include "places.h"

namespace stepcast::testing {
namespace {

std::vector<std::string> export_words(const std::vector<std::string>& more) {
  std::vector<std::string> out{
      "export", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x2",     "--tp", "2",
      "--pp",   "4",       "--seq",        "4096",      "--global-batch", "64"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(ImportCommand, ErrorsNameTheFile) {
  const Folder folder;
  write_file(folder / "settings.json", R"({"train_batch_size": 8})");
  const Outcome out = run({"import", folder / "settings.json", "--cluster", "dgx-h100"});
  expect_refused(out);
  EXPECT_EQ(out.error, "error: " + folder / "settings.json" +
                           ": model: is required and missing (give --model NAME|PATH)\n");
}

TEST(ExportCommand, OneFileGoesToStandardOutputAndWhatItCannotSayToTheOther) {
  const Outcome out =
      run(export_words({"--to", "megatron", "--set", "layout.order=tp-pp-dp-cp-ep"}));
  EXPECT_EQ(out.code, 0) << out.error;
  EXPECT_TRUE(has(out.out, "--tensor-model-parallel-size 2"));
  EXPECT_TRUE(
      has(out.error, "note: not expressible in Megatron-LM: layout.order=\"tp-pp-dp-cp-ep\""));
  EXPECT_TRUE(has(out.out, "# stepcast: layout.order=\"tp-pp-dp-cp-ep\""));
}

TEST(ExportCommand, SeveralFilesNeedAFolderAndFillIt) {
  expect_refused(run(export_words({"--to", "slurm,rankmap"})));
  const Folder folder;
  const std::string target = folder / "run";
  const Outcome out = run(export_words({"--to", "slurm,rankmap", "-o", target, "--quiet"}));
  EXPECT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.out + out.error, "");
  EXPECT_TRUE(has(read_file(target + "/train.sbatch"), "#SBATCH --nodes=2"));
  EXPECT_TRUE(has(read_file(target + "/rank_map.csv"), "15,1,7,1,0,1,3"));
}

TEST(ExportCommand, WritesNothingWhenATargetIsRefused) {
  const Folder folder;
  expect_refused(run(export_words({"--to", "rankmap,deepspeed", "-o", folder / "run/"})));
  expect_refused(run(export_words({"--to", "slurm", "-o", folder / "no/such/folder/"})));
  expect_refused(run(export_words({"--to", "slurms"})));
  EXPECT_EQ(folder.files(), 0u);
}

TEST(ExportCommand, APlaceOfAPlanIsLaunchedAsItWasForecast) {
  const Folder folder;
  const std::string plan = folder / "plan.json", settings = folder / "train.toml";
  ASSERT_EQ(run({"plan", "--model", "llama-3.1-8b", "--cluster", "dgx-h100x1", "--framework",
                 "fsdp", "--global-batch", "64", "--seq", "4096", "--format", "json", "-o", plan})
                .code,
            0);
  const Outcome out = run({"export", plan, "--place", "1", "--to", "torchtitan", "-o", settings});
  ASSERT_EQ(out.code, 0) << out.error;
  const Outcome back = run({"import", settings, "--cluster", "dgx-h100x1"});
  ASSERT_EQ(back.code, 0) << back.error;
  write_file(folder / "back.json", back.out);
  const auto again = run({"predict", folder / "back.json", "--format", "json"});
  ASSERT_EQ(again.code, 0) << again.error;
  const auto first = nlohmann::json::parse(read_file(plan))["plans"][0]["prediction"];
  EXPECT_NEAR(again.json()["step_time_s"].get<double>(), first["step_time_s"].get<double>(), 1e-6);
  expect_refused(run({"export", plan, "--place", "99", "--to", "torchtitan"}));
  expect_refused(run({"export", plan, "--to", "torchtitan"}));
  expect_refused(run({"export", settings, "--place", "1", "--to", "torchtitan"}));
}

TEST(ImportCommand, GivesBackTheScenarioThatWasExported) {
  const Folder folder;
  ASSERT_EQ(run(export_words({"--to", "slurm", "-o", folder / "job", "--quiet"})).code, 0);
  const Outcome imported = run({"import", folder / "job", "-o", folder / "back.json"});
  EXPECT_EQ(imported.code, 0) << imported.error;
  const Outcome again = run({"export", "--to", "slurm", folder / "back.json", "--quiet"});
  EXPECT_EQ(again.out, read_file(folder / "job").c_str()) << again.error;
  const auto words = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--format", "json"});
    return run(more).json();
  };
  std::vector<std::string> original = export_words({});
  original[0] = "predict";
  EXPECT_EQ(words({"predict", folder / "back.json"}), words(original));
}

TEST(ImportCommand, FlagsAreLaidOverTheFileAndANamedClusterTakesItsSize) {
  const Folder folder;
  const std::string script = folder / "train.sh";
  write_file(script,
             "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 24 "
             "--hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
             "--max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 128 "
             "--vocab-size 51200 --bf16 --tensor-model-parallel-size 2 --lr 1e-4\n");
  expect_refused(run({"import", script}));
  const Outcome out = run({"import", script, "--cluster", "dgx-a100-80g", "--micro-batch", "1"});
  EXPECT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.json()["cluster"]["gpus"], 32);
  EXPECT_EQ(out.json()["layout"]["micro_batch"], 1);
  EXPECT_TRUE(has(out.error, "without effect on cost, left out: --lr"));
  const Outcome other = run({"import", script, "--cluster", "dgx-a100-80gx2"});
  expect_refused(other);
  EXPECT_TRUE(has(other.error, "starts 32 GPUs, and the cluster has 16")) << other.error;
}

TEST(ImportCommand, AnErrorOfAKeyNamesTheFlagThatSetIt) {
  const Folder folder;
  const std::string script = folder / "train.sh";
  write_file(script,
             "python pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
             "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 "
             "--global-batch-size 128 --vocab-size 51200 --tensor-model-parallel-size 3\n");
  const Outcome out = run({"import", script, "--cluster", "dgx-a100-80gx3"});
  expect_refused(out);
  EXPECT_TRUE(has(out.error, "train.sh: --tensor-model-parallel-size (layout.tp): 3 does not"))
      << out.error;
}

TEST(ImportCommand, AHuggingFaceConfigAndDeepSpeedsJsonTakeTheRestFromFlags) {
  const Folder folder;
  const std::string config = source_folder() + "/models/llama-2-7b.json";
  const std::string settings = folder / "ds.json";
  write_file(settings, R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
                           "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  const Outcome out = run({"import", settings, "--model", config, "--cluster", "dgx-h100x2"});
  EXPECT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.json()["layout"]["zero"], 2);
  const Outcome model = run({"import", config, "--cluster", "dgx-h100", "--global-batch", "8"});
  EXPECT_EQ(model.code, 0) << model.error;
}

TEST(ImportCommand, WhatIsOnlyNotSupportedYetIsWrittenAndSaidSo) {
  const Folder folder;
  const std::string settings = folder / "titan.toml";
  write_file(settings,
             "[training]\nglobal_batch_size = 16\nlocal_batch_size = 1\nseq_len = 4096\n"
             "[parallelism]\ncontext_parallel_degree = 2\n"
             "[activation_checkpoint]\nmode = \"none\"\n");
  const Outcome out = run({"import", settings, "--model", "llama-3.1-8b", "--cluster", "dgx-h100"});
  EXPECT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.json()["layout"]["cp"], 2);
}

TEST(ExportCommand, SaysThatATargetHasNoSettingForAdapters) {
  const Outcome megatron = run(export_words({"--to", "megatron", "--set", "training.mode=lora"}));
  expect_refused(megatron);
  EXPECT_TRUE(has(megatron.error, "training.mode: lora has no setting in Megatron-LM"))
      << megatron.error;
  const Outcome titan = run(
      export_words({"--to", "torchrun", "--framework", "fsdp", "--set", "training.mode=qlora"}));
  expect_refused(titan);
  EXPECT_TRUE(has(titan.error, "training.mode: qlora has no setting in torchtitan")) << titan.error;
}

std::vector<std::string> tuning_words(const std::vector<std::string>& more) {
  std::vector<std::string> out{"export",
                               "--model",
                               "llama-3.1-8b",
                               "--cluster",
                               "dgx-h100",
                               "--global-batch",
                               "64",
                               "--seq",
                               "2048",
                               "--micro-batch",
                               "2",
                               "--tp",
                               "1",
                               "--zero",
                               "3",
                               "--framework",
                               "fsdp",
                               "--set",
                               "training.mode=qlora",
                               "--recompute",
                               "full"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// 64 sequences of 8 GPUs in micro-batches of 2: four are accumulated.
TEST(ExportCommand, WritesAdaptersForPeftAndTorchtune) {
  const Folder folder;
  const Outcome out =
      run(tuning_words({"--to", "peft,torchtune", "-o", folder / "run", "--quiet"}));
  ASSERT_EQ(out.code, 0) << out.error;
  const YAML::Node sft = YAML::LoadFile(folder / "run/sft.yaml");
  EXPECT_EQ(sft["per_device_train_batch_size"].as<int>(), 2);
  EXPECT_EQ(sft["gradient_accumulation_steps"].as<int>(), 4);
  EXPECT_EQ(sft["max_length"].as<int>(), 2048);
  EXPECT_EQ(sft["lora_r"].as<int>(), 16);
  EXPECT_TRUE(sft["load_in_4bit"].as<bool>());
  EXPECT_TRUE(sft["gradient_checkpointing"].as<bool>());
  EXPECT_EQ(sft["lora_target_modules"].size(), 7u);
  const YAML::Node accelerate = YAML::LoadFile(folder / "run/accelerate.yaml");
  EXPECT_EQ(accelerate["num_processes"].as<int>(), 8);
  EXPECT_EQ(accelerate["distributed_type"].as<std::string>(), "FSDP");
  const nlohmann::json adapter =
      nlohmann::json::parse(read_file(folder / "run/adapter_config.json"));
  EXPECT_EQ(adapter["r"], 16);
  const YAML::Node tune = YAML::LoadFile(folder / "run/torchtune.yaml");
  EXPECT_EQ(tune["model"]["_component_"].as<std::string>(),
            "torchtune.models.llama3_1.qlora_llama3_1_8b");
  EXPECT_EQ(tune["batch_size"].as<int>(), 2);

  const Outcome tensor =
      run(tuning_words({"--to", "peft", "--set", "layout.tp=2", "-o", folder / "no"}));
  expect_refused(tensor);
  EXPECT_TRUE(has(tensor.error, "2 cannot be said in PEFT")) << tensor.error;
  const Outcome model =
      run(tuning_words({"--to", "torchtune", "--set", "model=qwen2.5-14b", "-o", folder / "no"}));
  expect_refused(model);
  EXPECT_TRUE(has(model.error, "has no builder in torchtune")) << model.error;
  const Outcome none =
      run(tuning_words({"--to", "peft", "--set", "training.mode=pretrain", "-o", folder / "no"}));
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "trains adapters, and the scenario has none")) << none.error;
}

// Every key of a layout that Megatron has a flag for comes back without the comments.
TEST(ExportCommand, SaysContextFp8MomentsAndDispatchersInMegatronsFlags) {
  const Folder folder;
  const std::string script = folder / "train.sh";
  const Outcome out = run({"export",
                           "--model",
                           "mixtral-8x7b",
                           "--cluster",
                           "dgx-h100x4",
                           "--global-batch",
                           "64",
                           "--seq",
                           "4096",
                           "--tp",
                           "2",
                           "--pp",
                           "2",
                           "--cp",
                           "2",
                           "--ep",
                           "2",
                           "--precision",
                           "fp8",
                           "--set",
                           "training.fp8_recipe=blockwise",
                           "--set",
                           "training.fp8_params=true",
                           "--set",
                           "training.moments_precision=bf16",
                           "--set",
                           "layout.cp_method=all_to_all",
                           "--set",
                           "model.moe.dispatcher=deepep",
                           "--to",
                           "megatron",
                           "-o",
                           script});
  ASSERT_EQ(out.code, 0) << out.error;
  std::istringstream lines(read_file(script));
  std::string bare;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# stepcast:")) bare += line + "\n";
  }
  write_file(script, bare);
  const nlohmann::json back = run({"import", script, "--cluster", "dgx-h100x4"}).json();
  EXPECT_EQ(back["layout"]["cp_method"], "all_to_all");
  EXPECT_EQ(back["training"]["precision"], "fp8");
  EXPECT_EQ(back["training"]["fp8_recipe"], "blockwise");
  EXPECT_EQ(back["training"]["fp8_params"], true);
  EXPECT_EQ(back["training"]["moments_precision"], "bf16");
  EXPECT_EQ(back["model"]["moe"]["dispatcher"], "deepep");
}

// The file of Hugging Face's documentation of DeepSpeed: both half precisions are "auto".
TEST(ImportCommand, ReadsTheDocumentedFileOfHuggingFace) {
  const Folder folder;
  const std::string file = folder / "ds_config.json";
  write_file(file, R"({"fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
      "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
      "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto",
      "warmup_num_steps": "auto"}},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", "pin_memory": true},
      "offload_param": {"device": "none", "pin_memory": true}, "overlap_comm": true,
      "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
      "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
      "stage3_gather_16bit_weights_on_model_save": true},
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000,
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "wall_clock_breakdown": false})");
  const Outcome out = run({"import", file, "--cluster", "dgx-h100", "--model", "llama-3.1-8b",
                           "--global-batch", "64", "--micro-batch", "1", "--seq", "2048"});
  ASSERT_EQ(out.code, 0) << out.error;
  EXPECT_EQ(out.json()["training"]["precision"], "bf16");
  EXPECT_EQ(out.json()["layout"]["zero"], 3);
  EXPECT_TRUE(has(out.error, "comes from the Trainer: bf16 is taken")) << out.error;
}

TEST(ExportCommand, LeavesAdaptersToTheTrainingProgramOfDeepSpeed) {
  const Folder folder;
  const Outcome out = run(
      export_words({"--to", "deepspeed", "--framework", "deepspeed", "--set", "training.mode=lora",
                    "--set", "training.lora_rank=32", "-o", folder / "ds.json"}));
  ASSERT_EQ(out.code, 0) << out.error;
  EXPECT_TRUE(has(out.error, "not expressible in DeepSpeed: training.mode=\"lora\"")) << out.error;
  const Outcome back = run({"import", folder / "ds.json"});
  EXPECT_EQ(back.code, 0) << back.error;
  EXPECT_EQ(back.json()["training"]["mode"], "lora");
  EXPECT_EQ(back.json()["training"]["lora_rank"], 32);
}

TEST(ImportCommand, RefusesAVariableThatTheScriptDoesNotHave) {
  const Folder folder;
  const std::string script = folder / "train.sh";
  write_file(script,
             "torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
             "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 "
             "--global-batch-size 128 --vocab-size 51200 --bf16 "
             "--tensor-model-parallel-size ${TP_SIZE:-1}\n");
  const std::vector<std::string> words = {"import", script, "--cluster", "dgx-a100-80gx4"};
  const auto with = [&](const std::string& variable) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--variable", variable});
    return run(all);
  };
  EXPECT_EQ(with("TP_SIZE=2").json()["layout"]["tp"], 2);
  const Outcome unused = with("TP_SZE=2");
  expect_refused(unused);
  EXPECT_TRUE(has(unused.error, "has no variable 'TP_SZE' (did you mean 'TP_SIZE'?)"))
      << unused.error;
  write_file(script, R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1})");
  const Outcome no_script = with("TP_SIZE=2");
  expect_refused(no_script);
  EXPECT_TRUE(has(no_script.error, "is for shell scripts")) << no_script.error;
}

TEST(ImportCommand, NamesEveryKeyOfDeepSpeedThatItDrops) {
  const Folder folder;
  const std::string settings = folder / "ds.json";
  write_file(settings, R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e8,
      "stage3_max_live_parameters": 1e9, "contiguous_gradients": true, "reduce_scatter": true}})");
  const std::vector<std::string> words = {"import",     settings,    "--model",
                                          "llama-2-7b", "--cluster", "dgx-h100x2"};
  const Outcome out = run(words);
  ASSERT_EQ(out.code, 0) << out.error;
  for (const char* part :
       {"warning: zero_optimization.stage3_prefetch_bucket_size: ",
        "warning: zero_optimization.stage3_max_live_parameters ",
        "zero_optimization.contiguous_gradients, zero_optimization.reduce_scatter"}) {
    EXPECT_TRUE(has(out.error, part)) << part << "\n" << out.error;
  }
  write_file(settings, R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 0, "stage3_prefetch_bucket_size": 0,
                          "reduce_bucket_size": 5e8}})");
  const Outcome unsharded = run(words);
  for (const char* key : {"stage3_prefetch_bucket_size", "reduce_bucket_size"}) {
    EXPECT_TRUE(has(unsharded.error, key)) << unsharded.error;
  }
}

TEST(ImportCommand, SaysWhatStandsInForAVocabularyOfATokenizer) {
  const Folder folder;
  const std::string script = folder / "my.sh";
  write_file(script,
             "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
             "--num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
             "--micro-batch-size 1 --global-batch-size 8 --tokenizer-type HuggingFaceTokenizer\n");
  const Outcome none = run({"import", script, "--cluster", "dgx-h100x1"});
  expect_refused(none);
  EXPECT_TRUE(has(none.error, "my.sh: model.vocab: is not in the file")) << none.error;
  EXPECT_TRUE(has(none.error, "--set model.vocab=N; a script says it with --vocab-size"))
      << none.error;
  const Outcome set =
      run({"import", script, "--cluster", "dgx-h100x1", "--set", "model.vocab=512"});
  EXPECT_EQ(set.code, 0) << set.error;
}

TEST(ImportCommand, SaysWhereAFileIsNoJson) {
  const Folder folder;
  const std::string settings = folder / "ds.json";
  write_file(settings, "{\"train_batch_size\": 64,\n \"bf16\": {\"enabled\": tru}}\n");
  for (const char* format : {"", "deepspeed", "huggingface", "torchtitan"}) {
    std::vector<std::string> words = {"import", settings, "--cluster", "dgx-h100"};
    if (*format != '\0') words.insert(words.end(), {"--from", format});
    const Outcome out = run(words);
    expect_refused(out);
    EXPECT_TRUE(has(out.error, "ds.json: not valid JSON: line 2, column ")) << out.error;
  }
}

}  // namespace
}  // namespace stepcast::testing
