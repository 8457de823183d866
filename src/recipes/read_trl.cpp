// SPDX-License-Identifier: Apache-2.0
// Recipes of TRL's commands and of scripts around Hugging Face's Trainer: TrainingArguments,
// SFTConfig, ModelConfig (huggingface/trl, trl/trainer, 2026). How ranks share the model stands in
// Accelerate's file beside it.
#include "core/gathered_errors.h"
#include "core/json_tree.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/yaml_json.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

void read_trl_adapters(JsonKeys& root, ImportedScenario& out) {
  const bool in_four = root.boolean("load_in_4bit").value_or(false);
  const auto rank = root.integer("lora_r", 1);
  const SortedJson* modules = root.raw("lora_target_modules");
  const bool has_adapters = root.boolean("use_peft").value_or(in_four);
  const auto dropout = root.number("lora_dropout");
  if (!has_adapters) return;
  set_lora_dropout(dropout, "lora_dropout", out);
  set_lora(in_four, rank, "use_peft", out);
  set_lora_targets(modules, "lora_target_modules", out);
}

// Accelerate's file beside the script's: its keys are told by its name.
void read_accelerate_beside(const ImportInput& input, ImportedScenario& out) {
  const std::string own = out.file;
  const std::size_t settings = out.settings.size();
  out.file = input.accelerate->file;
  const auto root = yaml_to_json(input.accelerate->text, out.file);
  if (!root) {
    append(out.errors, root.error());
  } else {
    read_accelerate(*root, input, out);
  }
  for (std::size_t i = settings; i < out.settings.size(); ++i) {
    out.settings[i].origin = out.file + ": " + out.settings[i].origin;
  }
  out.file = own;
}

// The Trainer itself takes FSDP's words and a file of DeepSpeed, else Accelerate says it.
void read_trl_sharding(JsonKeys& root, const ImportInput& input, ImportedScenario& out) {
  if (input.accelerate) return read_accelerate_beside(input, out);
  const SortedJson* fsdp = root.raw("fsdp");
  if (const SortedJson* deepspeed = root.raw("deepspeed")) {
    out.set_word("training.framework", "deepspeed", "deepspeed");
    if (deepspeed->is_string()) {
      out.warnings.push_back("deepspeed: " + deepspeed->get<std::string>() +
                             " is another file and is not read: --zero, --set layout.offload");
    }
    return;
  }
  if (root.has("fsdp_config") || (fsdp != nullptr && fsdp->is_string() && *fsdp != "")) {
    JsonKeys section = root.section("fsdp_config");
    read_fsdp_section(section, out);
    return;
  }
  out.warnings.emplace_back(
      "how ranks share the model stands in Accelerate's file: give it behind this one, or --zero "
      "and --tp");
  set_plain_data_parallel("", out);
}

// TRL computes in bf16 unless it is told otherwise; words of its own go before Accelerate's.
void read_trl_precision(JsonKeys& root, ImportedScenario& out) {
  const bool is_said = root.has("fp16") || root.has("bf16");
  const Setting* other = out.find("training.precision");
  if (!is_said && other != nullptr && other->value != "\"fp32\"") return;
  const bool fp16 = root.boolean("fp16").value_or(false);
  const bool bf16 = root.boolean("bf16").value_or(!fp16);
  out.set_word("training.precision",
               bf16   ? "bf16"
               : fp16 ? "fp16"
                      : "fp32",
               fp16 ? "fp16" : "bf16");
}

// Keys of data, logs, checkpoints and learning rates.
constexpr const char* kTrlWithoutCost[] = {"model_revision",
                                           "torch_dtype",
                                           "dtype",
                                           "attn_implementation",
                                           "chat_template",
                                           "dataset_mixture",
                                           "dataset_mixer",
                                           "dataset_name",
                                           "dataset_config",
                                           "dataset_splits",
                                           "dataset_num_proc",
                                           "dataset_kwargs",
                                           "preprocessing_num_workers",
                                           "do_eval",
                                           "do_train",
                                           "eval_strategy",
                                           "evaluation_strategy",
                                           "eval_steps",
                                           "gradient_checkpointing_kwargs",
                                           "hub_model_id",
                                           "hub_strategy",
                                           "hub_model_revision",
                                           "learning_rate",
                                           "log_level",
                                           "logging_steps",
                                           "logging_strategy",
                                           "logging_first_step",
                                           "lr_scheduler_type",
                                           "lr_scheduler_kwargs",
                                           "max_steps",
                                           "num_train_epochs",
                                           "output_dir",
                                           "overwrite_output_dir",
                                           "per_device_eval_batch_size",
                                           "push_to_hub",
                                           "remove_unused_columns",
                                           "report_to",
                                           "save_strategy",
                                           "save_steps",
                                           "save_total_limit",
                                           "seed",
                                           "warmup_ratio",
                                           "warmup_steps",
                                           "weight_decay",
                                           "lora_alpha",

                                           "tf32",
                                           "trust_remote_code",
                                           "eos_token",
                                           "pad_token",
                                           "max_grad_norm",
                                           "bnb_4bit_quant_type",
                                           "use_bnb_nested_quant",
                                           "load_best_model_at_end",
                                           "lora_task_type",
                                           "tokenizer_name_or_path",
                                           "dataloader_num_workers",
                                           "run_name",
                                           "system_prompt",
                                           "packing_strategy",
                                           "padding_free",
                                           "ddp_timeout"};

}  // namespace

void read_trl(const SortedJson& root_json, const ImportInput& input, ImportedScenario& out) {
  JsonKeys root(root_json, "", out);
  if (const auto model = root.text("model_name_or_path")) {
    out.set_word("model", *model, "model_name_or_path");
  }
  read_trl_sharding(root, input, out);
  read_trl_adapters(root, out);
  read_trl_precision(root, out);
  const bool is_newer = root.has("max_length");
  const char* length_key = is_newer ? "max_length" : "max_seq_length";
  root.integer("max_seq_length");
  root.set_count("training.sequence_length", length_key);
  // Recomputed is whatever one of the two files says.
  const auto on = root.boolean("gradient_checkpointing");
  if (on && (*on || out.find("layout.recompute") == nullptr)) {
    out.set_word("layout.recompute", *on ? "full" : "none", "gradient_checkpointing");
  }
  set_device_batch(root.integer("per_device_train_batch_size", 1),
                   root.integer("gradient_accumulation_steps", 1), "per_device_train_batch_size",
                   out);
  if (!root.boolean("packing").value_or(false)) {
    out.warnings.emplace_back(
        "packing is off: samples are shorter than the longest, and every sequence counts as full");
  }
  if (root.boolean("torch_compile").value_or(false)) {
    out.set_flag("training.compile", true, "torch_compile");
  }
  read_liger(root, out);
  note_optimizer(root, "optim", out);
  root.without_effect(kTrlWithoutCost);
  root.may_change_cost();
}

}  // namespace stepcast
