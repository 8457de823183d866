// SPDX-License-Identifier: Apache-2.0
#include "recipes/hugging_face_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/nearest.h"

namespace stepcast {
namespace {

struct LoraTarget {
  const char* module;
  const char* stepcast;
};
constexpr std::array kLoraTargets{
    LoraTarget{"q_proj", "qkv"}, LoraTarget{"k_proj", "qkv"}, LoraTarget{"v_proj", "qkv"},
    LoraTarget{"qkv_proj", "qkv"}, LoraTarget{"query_key_value", "qkv"},
    LoraTarget{"linear_qkv", "qkv"},
    // Latent attention, by DeepSeek's names and Megatron's.
    LoraTarget{"q_a_proj", "qkv"}, LoraTarget{"q_b_proj", "qkv"},
    LoraTarget{"kv_a_proj_with_mqa", "qkv"}, LoraTarget{"kv_b_proj", "qkv"},
    LoraTarget{"linear_q_proj", "qkv"}, LoraTarget{"linear_q_down_proj", "qkv"},
    LoraTarget{"linear_q_up_proj", "qkv"}, LoraTarget{"linear_kv_down_proj", "qkv"},
    LoraTarget{"linear_kv_up_proj", "qkv"}, LoraTarget{"o_proj", "attention_out"},
    LoraTarget{"output_proj", "attention_out"}, LoraTarget{"linear_proj", "attention_out"},
    LoraTarget{"dense", "attention_out"}, LoraTarget{"gate_proj", "mlp"},
    LoraTarget{"up_proj", "mlp"}, LoraTarget{"down_proj", "mlp"}, LoraTarget{"gate_up_proj", "mlp"},
    LoraTarget{"linear_fc1", "mlp"}, LoraTarget{"linear_fc2", "mlp"}, LoraTarget{"fc1", "mlp"},
    LoraTarget{"fc2", "mlp"}};

// A key with or without "fsdp_" in front.
template <class Value>
std::optional<Value> with_or_without(const std::optional<Value>& with,
                                     const std::optional<Value>& without) {
  return with ? with : without;
}

std::optional<bool> fsdp_flag(JsonKeys& keys, const char* with, const char* without) {
  return with_or_without(keys.boolean(with), keys.boolean(without));
}

// fsdp_reshard_after_forward is true or false in the second version, and was a word in the first.
void read_fsdp_sharding(JsonKeys& fsdp, ImportedScenario& out) {
  const SortedJson* reshard = fsdp.raw("fsdp_reshard_after_forward");
  if (reshard == nullptr) reshard = fsdp.raw("reshard_after_forward");
  std::string strategy;
  for (const char* key : {"fsdp_sharding_strategy", "sharding_strategy"}) {
    const SortedJson* said = fsdp.raw(key);
    if (said == nullptr) continue;
    strategy = said->is_string() ? said->get<std::string>() : json_text(*said);
  }
  if (reshard != nullptr && reshard->is_string()) strategy = reshard->get<std::string>();
  const std::string key = fsdp.path_of("fsdp_sharding_strategy");
  if (strategy == "SHARD_GRAD_OP" || strategy == "2") {
    out.set_integer("layout.zero", 2, key);
  } else if (strategy == "NO_SHARD" || strategy == "3") {
    out.set_integer("layout.zero", 0, key);
  } else if (strategy == "HYBRID_SHARD" || strategy == "4") {
    out.set_integer("layout.zero", 3, key);
    out.warnings.push_back(key +
                           ": HYBRID_SHARD shards inside a node: say how many ranks with "
                           "--set layout.shard_group=N");
  } else if (strategy.empty() || strategy == "FULL_SHARD" || strategy == "1") {
    const bool keeps = reshard != nullptr && reshard->is_boolean() && !reshard->get<bool>();
    out.set_integer("layout.zero", keeps ? 2 : 3,
                    reshard != nullptr ? fsdp.path_of("fsdp_reshard_after_forward") : key);
  } else {
    out.fail(ErrorCode::kBadValue, key, fmt::format("'{}' is not accepted", strategy),
             "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD");
  }
}

}  // namespace

void set_device_batch(std::optional<std::int64_t> micro_batch,
                      std::optional<std::int64_t> accumulation, const char* micro_key,
                      ImportedScenario& out) {
  if (!micro_batch) return;
  out.set_integer("layout.micro_batch", *micro_batch, micro_key);
  const std::int64_t shared =
      out.degree("layout.tp") * out.degree("layout.cp") * out.degree("layout.pp");
  if (!out.gpus || *out.gpus % shared != 0) {
    out.fail(ErrorCode::kMissingKey, micro_key,
             "is the batch of a device, and the number of GPUs is not known",
             "--cluster NAMExNODES, or --gpus");
    return;
  }
  out.set_integer("training.global_batch",
                  capped_product({*micro_batch, accumulation.value_or(1), *out.gpus / shared}),
                  micro_key);
}

void read_fsdp_section(JsonKeys& fsdp, ImportedScenario& out) {
  out.set_word("training.framework", "fsdp", "");
  read_fsdp_sharding(fsdp, out);
  if (fsdp_flag(fsdp, "fsdp_offload_params", "offload_params").value_or(false)) {
    out.set_number("layout.offload.parameters", 1, fsdp.path_of("fsdp_offload_params"));
    out.set_number("layout.offload.optimizer", 1, fsdp.path_of("fsdp_offload_params"));
  }
  if (fsdp_flag(fsdp, "fsdp_activation_checkpointing", "activation_checkpointing")
          .value_or(false)) {
    out.set_word("layout.recompute", "full", fsdp.path_of("fsdp_activation_checkpointing"));
  }
  for (const char* key : {"fsdp_forward_prefetch", "forward_prefetch"}) fsdp.boolean(key);
  fsdp.without_effect({"fsdp_version",
                       "version",
                       "fsdp_auto_wrap_policy",
                       "auto_wrap_policy",
                       "fsdp_transformer_layer_cls_to_wrap",
                       "transformer_layer_cls_to_wrap",
                       "fsdp_state_dict_type",
                       "state_dict_type",
                       "final_state_dict_type",
                       "fsdp_sync_module_states",
                       "sync_module_states",
                       "fsdp_use_orig_params",
                       "use_orig_params",
                       "fsdp_cpu_ram_efficient_loading",
                       "cpu_ram_efficient_loading",
                       "fsdp_limit_all_gathers",
                       "limit_all_gathers",
                       "fsdp_backward_prefetch",
                       "backward_prefetch",
                       "fsdp_backward_prefetch_policy",
                       "fsdp_min_num_params"});
  fsdp.may_change_cost();
}

void read_liger(JsonKeys& keys, ImportedScenario& out) {
  const bool all = keys.boolean("use_liger_kernel").value_or(false);
  const auto on = [&](const char* key) { return keys.boolean(key).value_or(false); };
  const std::string key = keys.path_of(all ? "use_liger_kernel" : "liger_glu_activation");
  // Its kernels are what a compiler makes of the same chains.
  const bool chains = on("liger_glu_activation"), norms = on("liger_rms_norm");
  if ((all || (chains && norms)) && !keys.has("torch_compile")) {
    out.set_flag("training.compile", true, key);
  }
  if (on("liger_cross_entropy")) {
    out.set_flag("training.fused_cross_entropy", true, keys.path_of("liger_cross_entropy"));
  }
  const char* linear = all ? "use_liger_kernel" : "liger_fused_linear_cross_entropy";
  if (all || on("liger_fused_linear_cross_entropy")) {
    out.set_integer("training.loss_chunks", kLinearLossChunks, keys.path_of(linear));
  }
  keys.without_effect({"liger_rope", "liger_layer_norm"});
}

void set_plain_data_parallel(const char* key, ImportedScenario& out) {
  out.set_word("training.framework", "fsdp", key);
  out.set_integer("layout.zero", 0, key);
}

void set_lora_targets(const SortedJson* modules, const char* key, ImportedScenario& out) {
  if (modules == nullptr || !modules->is_array() || modules->empty()) return;
  std::set<std::string> targets;
  for (const SortedJson& one : *modules) {
    std::string name = one.is_string() ? one.get<std::string>() : "";
    name = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
    const auto known = std::ranges::find_if(
        kLoraTargets, [&](const LoraTarget& target) { return name == target.module; });
    if (known == kLoraTargets.end()) {
      out.warnings.push_back(fmt::format("{}: adapters of '{}' are not modelled", key, name));
    } else {
      targets.insert(known->stepcast);
    }
  }
  if (targets.empty()) return;
  out.set_json("training.lora_targets", json_text(SortedJson(targets)), key);
}

void set_lora(bool quantized, std::optional<std::int64_t> rank, const char* key,
              ImportedScenario& out) {
  out.set_word("training.mode", quantized ? "qlora" : "lora", key);
  if (rank) out.set_integer("training.lora_rank", *rank, key);
}

void set_lora_dropout(std::optional<double> share, const char* key, ImportedScenario& out) {
  if (share) out.set_number("training.lora_dropout", *share, key);
}

void note_optimizer(JsonKeys& keys, const char* key, ImportedScenario& out) {
  const auto name = keys.text(key);
  if (!name || name->starts_with("adamw_torch") || name->starts_with("adamw_hf") ||
      *name == "adamw_apex_fused" || *name == "adamw") {
    return;
  }
  out.warnings.push_back(
      fmt::format("{}: {} is not modelled, Adam's states are counted", keys.path_of(key), *name));
}

}  // namespace stepcast
