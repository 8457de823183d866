// SPDX-License-Identifier: Apache-2.0
// Recipes of llm-foundry, which Composer runs with FSDP (mosaicml/llm-foundry,
// scripts/train/yamls; llmfoundry/models/mpt/configuration_mpt.py has MPT's defaults, 2025).
#include <fmt/format.h>

#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/json_keys.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

// MPT as a native model: learned positions unless attention has others, GELU, tied embeddings.
void read_mpt(JsonKeys& model, ImportedScenario& out) {
  SortedJson shape = SortedJson::object();
  const auto count = [&](const char* key, const char* ours) {
    const auto value = model.integer(key, 1);
    if (value) shape[ours] = *value;
    return value;
  };
  const auto hidden = count("d_model", "hidden");
  count("n_heads", "heads");
  count("n_layers", "layers");
  count("vocab_size", "vocab");
  count("max_seq_len", "max_positions");
  const double ratio = model.number("expansion_ratio").value_or(4);
  if (hidden) {
    shape["ffn"] = std::llround(ratio * static_cast<double>(*hidden));
  }
  JsonKeys attention = model.section("attn_config");
  const bool rotary = attention.boolean("rope").value_or(false);
  const bool alibi = attention.boolean("alibi").value_or(false);
  if (const auto groups = attention.integer("kv_n_heads", 1)) shape["kv_heads"] = *groups;
  attention.without_effect({"attn_impl", "attn_type", "attn_pdrop", "attn_uses_sequence_id",
                            "clip_qkv", "softmax_scale", "rope_theta", "rope_impl",
                            "rope_dail_config", "rope_hf_config", "qk_ln", "qk_gn"});
  attention.may_change_cost();
  shape["position"] = rotary ? "rope" : alibi ? "alibi" : "learned";
  shape["mlp"] = "gelu";
  shape["norm"] = "layernorm";
  shape["biases"] = !model.boolean("no_bias").value_or(false);
  shape["tied_embeddings"] = model.boolean("tie_word_embeddings").value_or(true);
  shape["vocab_multiple"] = 1;
  if (model.raw("ffn_config") != nullptr) {
    out.warnings.emplace_back(
        "model.ffn_config: MPT's plain layer is taken, another model is "
        "given with --model");
  }
  out.set_json("model", json_text(shape), "model");
}

void read_foundry_model(JsonKeys& root, ImportedScenario& out) {
  JsonKeys model = root.section("model");
  const std::string name = model.text("name").value_or("mpt_causal_lm");
  if (name == "mpt_causal_lm") {
    read_mpt(model, out);
  } else if (const auto path = model.text("pretrained_model_name_or_path")) {
    out.set_word("model", *path, "model.pretrained_model_name_or_path");
  } else {
    out.warnings.push_back(fmt::format("model.name: {} is not known, --model gives it", name));
  }
  if (model.raw("peft_config") != nullptr) {
    JsonKeys peft = model.section("peft_config");
    out.set_word("training.mode", "lora", "model.peft_config");
    peft.set_count("training.lora_rank", "r");
  }
  model.without_effect({"init_device", "pretrained", "config_overrides", "use_auth_token",
                        "use_flash_attention_2", "trust_remote_code", "init_config", "fc_type",
                        "loss_fn", "resid_pdrop", "emb_pdrop", "use_cache", "verbose"});
  model.may_change_cost();
}

void read_foundry_sharding(JsonKeys& root, ImportedScenario& out) {
  JsonKeys fsdp = root.section("fsdp_config");
  const auto strategy = fsdp.choice("sharding_strategy", {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
                                                          "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"});
  const bool shards = root.has("fsdp_config");
  const bool two = strategy == "SHARD_GRAD_OP" || strategy == "_HYBRID_SHARD_ZERO2";
  if (!shards || strategy == "NO_SHARD") {
    set_plain_data_parallel("fsdp_config.sharding_strategy", out);
  } else {
    out.set_word("training.framework", "fsdp", "");
    out.set_integer("layout.zero", two ? 2 : 3, "fsdp_config.sharding_strategy");
  }
  if (const SortedJson* mesh = fsdp.raw("device_mesh"); mesh != nullptr && mesh->is_array()) {
    // [replicas, shards], or the shards alone.
    if (mesh->size() == 2 && (*mesh)[1].is_number_integer() && (*mesh)[0].is_number_integer()) {
      const auto copies = (*mesh)[0].get<std::int64_t>(), shard = (*mesh)[1].get<std::int64_t>();
      if (copies > 1) out.set_integer("layout.shard_group", shard, "fsdp_config.device_mesh");
      if (!out.gpus && copies > 0 && shard > 0 && copies <= (1 << 20) && shard <= (1 << 20)) {
        out.gpus = copies * shard;
      }
    }
  }
  const bool again = fsdp.boolean("activation_checkpointing").value_or(false);
  out.set_word("layout.recompute", again ? "full" : "none", "fsdp_config.activation_checkpointing");
  if (fsdp.boolean("activation_cpu_offload").value_or(false)) {
    out.set_number("layout.offload.activations", 1, "fsdp_config.activation_cpu_offload");
  }
  const auto mixed = fsdp.raw("mixed_precision");
  if (mixed != nullptr && *mixed == "PURE") {
    out.set_word("training.reduce_precision", "bf16", "fsdp_config.mixed_precision");
  }
  fsdp.without_effect({"activation_checkpointing_reentrant", "limit_all_gathers", "verbose",
                       "state_dict_type", "use_orig_params", "sync_module_states",
                       "load_fsdp_monolith_rank0_only", "backward_prefetch", "forward_prefetch",
                       "activation_checkpointing_target", "data_parallel_shard_degree"});
  fsdp.may_change_cost();
  JsonKeys tensor = root.section("tp_config");
  tensor.set_count("layout.tp", "tensor_parallel_degree");
}

// Keys of data, logs, checkpoints and learning rates.
constexpr const char* kFoundryWithoutCost[] = {"variables",
                                               "data_local",
                                               "data_remote",
                                               "global_seed",
                                               "run_name",
                                               "seed",
                                               "tokenizer",
                                               "train_loader",
                                               "eval_loader",
                                               "scheduler",
                                               "optimizer",
                                               "max_duration",
                                               "eval_interval",
                                               "eval_first",
                                               "eval_subset_num_batches",
                                               "device_eval_batch_size",
                                               "progress_bar",
                                               "log_to_console",
                                               "console_log_interval",
                                               "callbacks",
                                               "loggers",
                                               "save_interval",
                                               "save_folder",
                                               "save_num_checkpoints_to_keep",
                                               "load_path",
                                               "dist_timeout",
                                               "autoresume",
                                               "python_log_level",
                                               "icl_tasks",
                                               "expandable_segments",
                                               "load_weights_only",
                                               "save_weights_only",
                                               "metadata"};

}  // namespace

void read_llm_foundry(const SortedJson& root_json, const ImportInput&, ImportedScenario& out) {
  JsonKeys root(root_json, "", out);
  read_foundry_model(root, out);
  read_foundry_sharding(root, out);
  root.set_count("training.sequence_length", "max_seq_len");
  root.set_count("training.global_batch", "global_train_batch_size");
  if (const auto batch = root.integer("device_train_microbatch_size", 1)) {
    out.set_integer("layout.micro_batch", *batch, "device_train_microbatch_size");
  } else if (root.said_auto()) {
    out.fail(ErrorCode::kMissingKey, "device_train_microbatch_size",
             "is \"auto\": the run found out how much fits", "--micro-batch");
  }
  const auto precision = root.text("precision").value_or("amp_bf16");
  if (precision.find("fp8") != std::string::npos) {
    out.set_word("training.precision", "fp8", "precision");
  } else {
    out.set_word("training.precision",
                 precision.find("bf16") != std::string::npos   ? "bf16"
                 : precision.find("fp16") != std::string::npos ? "fp16"
                                                               : "fp32",
                 "precision");
  }
  JsonKeys algorithms = root.section("algorithms");
  if (algorithms.has("gradient_clipping")) {
    out.set_word("training.grad_clip", "global", "algorithms.gradient_clipping");
  }
  algorithms.may_change_cost();
  if (root.raw("compile_config") != nullptr) {
    out.set_flag("training.compile", true, "compile_config");
  }
  root.without_effect(kFoundryWithoutCost);
  root.may_change_cost();
}

}  // namespace stepcast
