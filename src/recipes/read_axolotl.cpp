// SPDX-License-Identifier: Apache-2.0
// Axolotl's YAML (axolotl-ai-cloud/axolotl, src/axolotl/utils/schemas, 2026).
#include <fmt/format.h>

#include "core/json_tree.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

// Axolotl ships DeepSpeed's files under names that say the stage:
// deepspeed_configs/zero3_bf16.json.
void read_deepspeed_file(const std::string& file, ImportedScenario& out) {
  out.set_word("training.framework", "deepspeed", "deepspeed");
  const std::size_t at = file.find("zero");
  const char stage = at != std::string::npos && at + 4 < file.size() ? file[at + 4] : ' ';
  if (stage >= '1' && stage <= '3') {
    out.set_integer("layout.zero", stage - '0', "deepspeed");
    out.warnings.push_back(fmt::format(
        "deepspeed: {} is another file, of which only the stage in its name is read", file));
  } else {
    out.warnings.push_back(fmt::format(
        "deepspeed: {} is another file and is not read: --zero, --set layout.offload", file));
  }
}

void read_axolotl_layout(JsonKeys& root, ImportedScenario& out) {
  root.set_count("layout.tp", "tensor_parallel_size");
  root.set_count("layout.cp", "context_parallel_size");
  root.set_count("layout.cp", "sequence_parallel_degree");
  root.set_count("layout.ep", "expert_parallel_size");
  if (const auto shard = root.integer("dp_shard_size", 1)) {
    const std::int64_t copies = root.integer("dp_replicate_size", 1).value_or(1);
    if (copies > 1) out.set_integer("layout.shard_group", *shard, "dp_shard_size");
    if (!out.gpus) {
      out.gpus = *shard * copies * out.degree("layout.tp") * out.degree("layout.cp");
    }
  }
  if (const auto file = root.text("deepspeed")) {
    read_deepspeed_file(*file, out);
  } else if (root.has("fsdp_config") || root.has("fsdp")) {
    JsonKeys fsdp = root.section("fsdp_config");
    read_fsdp_section(fsdp, out);
  } else {
    set_plain_data_parallel("", out);
  }
  if (root.raw("gradient_checkpointing") != nullptr) {
    const SortedJson& said = *root.raw("gradient_checkpointing");
    const bool on = said.is_string() || (said.is_boolean() && said.get<bool>());
    out.set_word("layout.recompute", on ? "full" : "none", "gradient_checkpointing");
    if (said.is_string()) {
      out.warnings.push_back(
          fmt::format("gradient_checkpointing: {}: offloaded inputs are not modelled",
                      said.get<std::string>()));
    }
  }
}

void read_axolotl_adapter(JsonKeys& root, ImportedScenario& out) {
  const auto adapter = root.text("adapter");
  const bool in_four = root.boolean("load_in_4bit").value_or(false);
  const bool in_eight = root.boolean("load_in_8bit").value_or(false);
  const auto rank = root.integer("lora_r", 1);
  const bool all = root.boolean("lora_target_linear").value_or(false);
  const SortedJson* modules = root.raw("lora_target_modules");
  if (!adapter) {
    root.without_effect({"lora_dropout"});
    return;
  }
  set_lora(*adapter == "qlora" || in_four, rank, "adapter", out);
  set_lora_dropout(root.number("lora_dropout"), "lora_dropout", out);
  if (in_eight) {
    out.warnings.push_back(
        "load_in_8bit: frozen weights in eight bits are not modelled, 16 bits "
        "are counted");
  }
  if (!all) set_lora_targets(modules, "lora_target_modules", out);
  if (root.raw("lora_modules_to_save") != nullptr) {
    out.warnings.push_back(
        "lora_modules_to_save: modules that are trained whole beside adapters "
        "are not modelled");
  }
}

void read_axolotl_precision(JsonKeys& root, ImportedScenario& out) {
  const auto on = [&](const char* key) {
    const SortedJson* said = root.raw(key);
    return said != nullptr && !(said->is_boolean() && !said->get<bool>());
  };
  // "auto" is bf16 wherever the GPU has it.
  const bool fp16 = on("fp16"), fp8 = on("fp8");
  on("bf16");
  if (root.boolean("fp8_enable_fsdp_float8_all_gather").value_or(false)) {
    out.set_flag("training.fp8_params", true, "fp8_enable_fsdp_float8_all_gather");
  }
  out.set_word("training.precision",
               fp8    ? "fp8"
               : fp16 ? "fp16"
                      : "bf16",
               fp8    ? "fp8"
               : fp16 ? "fp16"
                      : "bf16");
  root.without_effect({"tf32", "float16", "bfloat16"});
}

// Keys of data, logs, checkpoints and learning rates.
constexpr const char* kAxolotlWithoutCost[] = {"datasets",
                                               "test_datasets",
                                               "dataset_prepared_path",
                                               "val_set_size",
                                               "output_dir",
                                               "chat_template",
                                               "num_epochs",
                                               "max_steps",
                                               "lr_scheduler",
                                               "learning_rate",
                                               "warmup_steps",
                                               "warmup_ratio",
                                               "evals_per_epoch",
                                               "saves_per_epoch",
                                               "save_steps",
                                               "eval_steps",
                                               "logging_steps",
                                               "weight_decay",
                                               "special_tokens",
                                               "tokens",
                                               "tokenizer_type",
                                               "model_type",
                                               "strict",
                                               "wandb_project",
                                               "wandb_entity",
                                               "wandb_watch",
                                               "wandb_name",
                                               "wandb_log_model",
                                               "resume_from_checkpoint",
                                               "lora_alpha",

                                               "lora_model_dir",
                                               "lora_fan_in_fan_out",
                                               "train_on_inputs",
                                               "group_by_length",
                                               "early_stopping_patience",
                                               "local_rank",
                                               "debug",
                                               "gradient_checkpointing_kwargs",
                                               "flash_attention",
                                               "attention",
                                               "sdp_attention",
                                               "xformers_attention",
                                               "eager_attention",
                                               "attn_implementation",
                                               "plugins",
                                               "hub_model_id",
                                               "seed",
                                               "save_first_step",
                                               "eval_sample_packing",
                                               "eval_table_size",
                                               "eval_batch_size",
                                               "save_safetensors",
                                               "save_total_limit",
                                               "max_grad_norm",
                                               "fsdp_version",
                                               "fsdp",
                                               "use_tensorboard",
                                               "trust_remote_code",
                                               "tokenizer_config",
                                               "base_model_config",
                                               "dataset_processes",
                                               "dataloader_num_workers",
                                               "dataloader_prefetch_factor",
                                               "dataloader_pin_memory",
                                               "adam_beta1",
                                               "adam_beta2",
                                               "adam_epsilon",
                                               "cosine_min_lr_ratio",
                                               "loss_watchdog_threshold",
                                               "loss_watchdog_patience",
                                               "shuffle_merged_datasets"};

}  // namespace

void read_axolotl(const SortedJson& root_json, const ImportInput&, ImportedScenario& out) {
  JsonKeys root(root_json, "", out);
  if (const auto model = root.text("base_model")) out.set_word("model", *model, "base_model");
  read_axolotl_layout(root, out);
  read_axolotl_adapter(root, out);
  read_axolotl_precision(root, out);
  root.set_count("training.sequence_length", "sequence_len");
  set_device_batch(root.integer("micro_batch_size", 1),
                   root.integer("gradient_accumulation_steps", 1), "micro_batch_size", out);
  const bool pads = root.boolean("pad_to_sequence_len").value_or(false);
  const bool packs = root.boolean("sample_packing").value_or(false);
  if (!packs && !pads) {
    out.warnings.push_back(
        "sample_packing is off: samples are shorter than sequence_len, and every "
        "sequence counts as full");
  }
  note_optimizer(root, "optimizer", out);
  if (root.boolean("torch_compile").value_or(false)) {
    out.set_flag("training.compile", true, "torch_compile");
  }
  read_liger(root, out);
  root.without_effect(kAxolotlWithoutCost);
  root.may_change_cost();
}

}  // namespace stepcast
