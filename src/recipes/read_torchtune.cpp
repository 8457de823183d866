// SPDX-License-Identifier: Apache-2.0
// torchtune's YAML (pytorch/torchtune, recipes/configs and recipes/*_finetune_*.py, 2025).
#include <fmt/format.h>

#include <regex>

#include "core/json_tree.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

constexpr const char* kComponent = "_component_";

// "torchtune.models.llama3_1.qlora_llama3_1_8b" becomes "llama-3.1-8b".
std::string model_of_builder(const std::string& builder) {
  const std::string name = builder.substr(builder.rfind('.') + 1);
  static const std::regex form(
      "(?:lora_|qlora_|dora_|qdora_)?([a-z_]*[a-z])(\\d?)_?(\\d?)_([a-z0-9_]+)");
  std::smatch parts;
  constexpr std::size_t kLongest = 100;  // a match needs room on the stack for each letter
  if (name.size() > kLongest || !std::regex_match(name, parts, form)) return name;
  std::string out = parts[1];
  if (parts[2].length() > 0) out += (out == "qwen" ? "" : "-") + parts[2].str();
  if (parts[3].length() > 0) out += "." + parts[3].str();
  std::string size = parts[4];
  for (const char* suffix : {"_instruct", "_base", "_reward"}) {
    const std::string end = suffix;
    if (size.ends_with(end)) size.resize(size.size() - end.size());
  }
  return out + "-" + size;
}

void read_tuned_model(JsonKeys& root, ImportedScenario& out) {
  JsonKeys model = root.section("model");
  const std::string builder = model.text(kComponent).value_or("");
  const std::string key = model.path_of(kComponent);
  out.set_word("model", model_of_builder(builder), key);
  const bool has_narrow_base = model.boolean("quantize_base").value_or(false);
  const bool quantized = has_narrow_base || builder.find(".qlora_") != std::string::npos;
  if (quantized || builder.find(".lora_") != std::string::npos) {
    set_lora(quantized, model.integer("lora_rank", 1), model.path_of("lora_rank").c_str(), out);
    set_lora_dropout(model.number("lora_dropout"), model.path_of("lora_dropout").c_str(), out);
    SortedJson modules = SortedJson::array();
    if (const SortedJson* said = model.raw("lora_attn_modules")) modules = *said;
    if (model.boolean("apply_lora_to_mlp").value_or(false)) modules.push_back("up_proj");
    set_lora_targets(&modules, model.path_of("lora_attn_modules").c_str(), out);
    if (model.boolean("apply_lora_to_output").value_or(false)) {
      out.warnings.push_back("model.apply_lora_to_output: adapters of the head are not modelled");
    }
    if (model.boolean("use_dora").value_or(false)) {
      out.warnings.push_back("model.use_dora: norms of DoRA's weights are not modelled");
    }
  } else {
    // The model is made in its type, and the optimizer updates it there.
    out.set_word("training.master_precision", root.text("dtype").value_or("bf16"), "dtype");
  }
  model.without_effect({"lora_alpha"});
  model.may_change_cost();
}

void read_tuned_ranks(JsonKeys& root, ImportedScenario& out) {
  root.set_count("layout.tp", "tensor_parallel_dim");
  root.set_count("layout.cp", "context_parallel_dim");
  const auto copies = root.integer("data_parallel_replicate_dim", 1).value_or(1);
  const auto shards = root.integer("data_parallel_shard_dim", -1).value_or(-1);
  if (copies > 1 && shards > 0) {
    out.set_integer("layout.shard_group", shards, "data_parallel_shard_dim");
  }
  const bool reshards = root.boolean("fsdp_reshard_after_forward").value_or(true);
  const bool offloads = root.boolean("fsdp_cpu_offload").value_or(false);
  if (out.gpus == 1) {
    set_plain_data_parallel("", out);
  } else {
    out.set_word("training.framework", "fsdp", "");
    out.set_integer("layout.zero", reshards ? 3 : 2, "fsdp_reshard_after_forward");
  }
  if (offloads) {
    out.set_number("layout.offload.parameters", 1, "fsdp_cpu_offload");
    out.set_number("layout.offload.optimizer", 1, "fsdp_cpu_offload");
  }
}

// The linear loss makes the logits of a part of the tokens; the other one makes all of them, and
// widens a part.
void read_tuned_loss(JsonKeys& root, ImportedScenario& out) {
  constexpr std::int64_t kParts = 8;  // num_output_chunks
  JsonKeys loss = root.section("loss");
  const std::string kind = loss.text(kComponent).value_or("");
  const std::int64_t parts = loss.integer("num_output_chunks", 1).value_or(kParts);
  if (kind.find("LinearCrossEntropyLoss") != std::string::npos) {
    out.set_integer("training.loss_chunks", parts, loss.path_of("num_output_chunks"));
  } else if (kind.find("CEWithChunkedOutputLoss") != std::string::npos) {
    out.set_flag("training.fused_cross_entropy", true, loss.path_of(kComponent));
  }
  loss.without_effect({"ignore_index", "tp_enabled", "mask_ignored_tokens"});
  loss.may_change_cost();
}

void read_tuned_optimizer(JsonKeys& root, ImportedScenario& out) {
  JsonKeys optimizer = root.section("optimizer");
  const std::string kind = optimizer.text(kComponent).value_or("");
  const std::string key = optimizer.path_of(kComponent);
  if (kind.find("8bit") != std::string::npos || kind.find("8Bit") != std::string::npos) {
    out.set_word("training.optimizer", "adamw_8bit", key);
    if (kind.find("Paged") != std::string::npos) {
      out.warnings.push_back(key + ": states in paged host memory are counted on the GPU");
    }
  } else if (kind.ends_with(".SGD")) {
    out.set_word("training.optimizer", "sgd", key);
  } else if (kind.find("Adafactor") != std::string::npos) {
    out.set_word("training.optimizer", "adafactor", key);
  } else if (!kind.empty() && !kind.ends_with("AdamW") && !kind.ends_with("Adam")) {
    out.warnings.push_back(
        fmt::format("{}: {} is not modelled, Adam's states are counted", key, kind));
  }
  if (root.boolean("optimizer_in_bwd").value_or(false)) {
    out.warnings.push_back(
        "optimizer_in_bwd: gradients that an update in the backward frees are counted");
  }
}

constexpr const char* kTorchtuneWithoutCost[] = {"output_dir",
                                                 "checkpointer",
                                                 "resume_from_checkpoint",
                                                 "save_adapter_weights_only",
                                                 "seed",
                                                 "shuffle",
                                                 "epochs",
                                                 "max_steps_per_epoch",
                                                 "lr_scheduler",
                                                 "metric_logger",
                                                 "log_every_n_steps",
                                                 "log_level",
                                                 "log_peak_memory_stats",
                                                 "device",
                                                 "profiler",
                                                 "custom_sharded_layers",
                                                 "enable_async_checkpointing",
                                                 "run_val_every_n_steps",
                                                 "dataset_val",
                                                 "batch_size_val",
                                                 "cudnn_deterministic_mode",
                                                 "tensor_parallel_plan"};

}  // namespace

void read_torchtune(const SortedJson& root_json, const ImportInput&, ImportedScenario& out) {
  JsonKeys root(root_json, "", out);
  read_tuned_model(root, out);
  read_tuned_ranks(root, out);
  JsonKeys tokenizer = root.section("tokenizer");
  if (tokenizer.has("max_seq_len")) {
    tokenizer.set_count("training.sequence_length", "max_seq_len");
  } else {
    out.warnings.push_back(
        "tokenizer.max_seq_len is not stated: --seq says how many tokens a sequence has");
  }
  set_device_batch(root.integer("batch_size", 1), root.integer("gradient_accumulation_steps", 1),
                   "batch_size", out);
  JsonKeys dataset = root.section("dataset");
  const bool packs =
      dataset.boolean("packed").value_or(false) || root.boolean("packed").value_or(false);
  if (!packs) {
    out.warnings.push_back(
        "dataset.packed is off: samples are shorter than max_seq_len, and every sequence counts "
        "as full");
  }
  out.set_word("training.precision", root.text("dtype").value_or("bf16"), "dtype");
  if (const auto again = root.boolean("enable_activation_checkpointing")) {
    out.set_word("layout.recompute", *again ? "full" : "none", "enable_activation_checkpointing");
  }
  if (root.boolean("enable_activation_offloading").value_or(false)) {
    out.set_number("layout.offload.activations", 1, "enable_activation_offloading");
  }
  out.set_flag("training.compile", root.boolean("compile").value_or(false), "compile");
  const SortedJson* clip = root.raw("clip_grad_norm");
  const bool clips = clip != nullptr && !clip->is_null();
  out.set_word("training.grad_clip", clips ? "global" : "none", "clip_grad_norm");
  read_tuned_loss(root, out);
  read_tuned_optimizer(root, out);
  root.without_effect(kTorchtuneWithoutCost);
  root.may_change_cost();
}

}  // namespace stepcast
