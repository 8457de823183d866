// SPDX-License-Identifier: Apache-2.0
// TRL's settings with Accelerate's file beside them, and scripts that say both as arguments.
#include "recipes/trl_script.h"

#include <gtest/gtest.h>

#include <string>

#include "recipes/import.h"

namespace stepcast {
namespace {

const std::string kSettings = R"(model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_length: 4096
packing: true
)";

const std::string kFsdp = R"(distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_activation_checkpointing: true
)";

const std::string kZero = R"(distributed_type: DEEPSPEED
mixed_precision: bf16
num_processes: 16
deepspeed_config:
  zero_stage: 2
  gradient_accumulation_steps: 8
)";

std::string value(const ImportedScenario& imported, const std::string& path) {
  const Setting* found = imported.find(path);
  return found == nullptr ? "" : found->value;
}

ImportedScenario read(const std::string& text, const std::string& accelerate = "") {
  ImportInput input;
  input.text = text;
  input.file = "sft";
  if (!accelerate.empty()) input.accelerate = {accelerate, "accelerate.yaml"};
  return import_text(detect_format(text), input);
}

bool warns(const ImportedScenario& imported, const std::string& words) {
  for (const std::string& warning : imported.warnings) {
    if (warning.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(TrlAndAccelerate, AreOneScenario) {
  const ImportedScenario out = read(kSettings, kFsdp);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  EXPECT_EQ(value(out, "training.framework"), "\"fsdp\"");
  EXPECT_EQ(value(out, "layout.zero"), "3");
  EXPECT_EQ(value(out, "layout.recompute"), "\"full\"");
  EXPECT_EQ(value(out, "layout.micro_batch"), "2");
  EXPECT_EQ(value(out, "training.global_batch"), "64");  // 2 x 4 x 8
  EXPECT_EQ(value(out, "training.precision"), "\"bf16\"");
  EXPECT_EQ(out.gpus, 8);
  EXPECT_FALSE(warns(out, "Accelerate's file"));
  EXPECT_EQ(out.find("layout.zero")->origin,
            "accelerate.yaml: fsdp_config.fsdp_reshard_after_forward");
}

TEST(TrlAndAccelerate, CopiesOnEachGpuAreZero0OfPyTorch) {
  for (const char* launch :
       {"distributed_type: MULTI_GPU\nnum_processes: 8\n",
        "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n"
        "  fsdp_sharding_strategy: NO_SHARD\n"}) {
    const ImportedScenario out = read(kSettings, launch);
    EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
    EXPECT_EQ(value(out, "training.framework"), "\"fsdp\"") << launch;
    EXPECT_EQ(value(out, "layout.zero"), "0") << launch;
  }
}

TEST(TrlAndAccelerate, TheTrainersBatchGoesBeforeDeepSpeeds) {
  const ImportedScenario out = read(kSettings, kZero);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  EXPECT_EQ(value(out, "training.framework"), "\"deepspeed\"");
  EXPECT_EQ(value(out, "layout.zero"), "2");
  EXPECT_EQ(value(out, "training.global_batch"), "128");  // 2 x 4 x 16
  EXPECT_FALSE(warns(out, "gradient_accumulation_steps"));
}

TEST(TrlAndAccelerate, WithoutItsFileTheOneIsAskedFor) {
  ImportInput input;
  input.text = kSettings;
  input.gpus = 8;
  EXPECT_TRUE(warns(import_text("trl", input), "stands in Accelerate's file"));
}

TEST(TrlAndAccelerate, ABrokenFileIsNamed) {
  const ImportedScenario out = read(kSettings, "distributed_type: TPU\n");
  ASSERT_FALSE(out.errors.empty());
  EXPECT_NE(to_string(out.errors).find("accelerate.yaml"), std::string::npos);
}

TEST(TrlScript, ReadsArgumentsAsTheYaml) {
  const std::string script =
      "#!/bin/bash\nMODEL=meta-llama/Llama-3.1-8B\n"
      "accelerate launch --config_file fsdp.yaml sft.py \\\n"
      "  --model_name_or_path $MODEL --per_device_train_batch_size 2 \\\n"
      "  --gradient-accumulation-steps=4 --max_length 4096 --packing --learning_rate 2e-5\n";
  EXPECT_EQ(detect_format(script), "trl-script");
  EXPECT_TRUE(is_script("trl-script"));
  const ImportedScenario out = read(script, kFsdp);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  EXPECT_EQ(value(out, "model"), "\"meta-llama/Llama-3.1-8B\"");
  EXPECT_EQ(value(out, "training.global_batch"), "64");
  EXPECT_EQ(value(out, "training.sequence_length"), "4096");
  EXPECT_EQ(value(out, "layout.zero"), "3");
  EXPECT_FALSE(warns(out, "config_file"));

  ImportInput alone;
  alone.text = script;
  alone.gpus = 8;
  EXPECT_TRUE(warns(import_text("trl-script", alone), "--config_file: fsdp.yaml"));
}

TEST(TrlScript, WordsOfTheLauncherGoOverAcceleratesFile) {
  const std::string script =
      "accelerate launch --num_processes 4 --use_deepspeed --zero_stage 3 train.py "
      "--model_name_or_path m --per_device_train_batch_size 1 --bf16\n";
  const ImportedScenario out = read(script);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  EXPECT_EQ(value(out, "layout.zero"), "3");
  EXPECT_EQ(out.gpus, 4);
  EXPECT_EQ(value(out, "training.global_batch"), "4");
  const ImportedScenario over = read(script, kZero);
  EXPECT_EQ(value(over, "layout.zero"), "3");
  EXPECT_EQ(over.gpus, 4);
}

TEST(TrlScript, TakesTheProcessesOfTorchrun) {
  const ImportedScenario out = read(
      "torchrun --nproc_per_node 8 --nnodes=2 sft.py --model_name_or_path m "
      "--per_device_train_batch_size 1\n");
  EXPECT_EQ(out.gpus, 16);
}

TEST(TrlScript, OtherScriptsAreNone) {
  EXPECT_FALSE(is_trl_script("python pretrain_gpt.py --num-layers 4\n"));
  EXPECT_FALSE(is_trl_script("# --model_name_or_path --per_device_train_batch_size\n"));
  EXPECT_NE(detect_format("python pretrain_gpt.py --num-layers 4\n"), "trl-script");
}

}  // namespace
}  // namespace stepcast
