// SPDX-License-Identifier: Apache-2.0
// Accelerate's file, as `accelerate config` writes it (huggingface/accelerate,
// src/accelerate/commands/config, 2026), with its sections for FSDP, DeepSpeed and the mesh. Model,
// batch and sequence stand elsewhere.
#include <fmt/format.h>

#include "core/json_tree.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

void read_deepspeed_section(JsonKeys& root, bool has_batch, ImportedScenario& out) {
  JsonKeys keys = root.section("deepspeed_config");
  out.set_word("training.framework", "deepspeed", "distributed_type");
  if (const auto file = keys.text("deepspeed_config_file")) {
    out.warnings.push_back(fmt::format(
        "deepspeed_config.deepspeed_config_file: {} is another file: import it, or give --zero",
        *file));
  }
  if (const auto stage = keys.integer("zero_stage")) {
    out.set_integer("layout.zero", *stage, "deepspeed_config.zero_stage");
  }
  const auto offload = [&](const char* key, const char* path, const char* where) {
    const auto device = keys.text(key).value_or("none");
    if (device == "none") return;
    out.set_number(path, 1, keys.path_of(key));
    if (device == "nvme") out.set_word(where, "nvme", keys.path_of(key));
  };
  offload("offload_optimizer_device", "layout.offload.optimizer",
          "layout.offload.optimizer_device");
  offload("offload_param_device", "layout.offload.parameters", "layout.offload.parameter_device");
  if (const auto clip = keys.number("gradient_clipping")) {
    out.set_word("training.grad_clip", *clip > 0 ? "global" : "none",
                 "deepspeed_config.gradient_clipping");
  }
  if (keys.integer("gradient_accumulation_steps").value_or(1) > 1 && !has_batch) {
    out.warnings.emplace_back(
        "deepspeed_config.gradient_accumulation_steps counts with the "
        "micro-batch, which is not in this file: --global-batch");
  }
  keys.without_effect({"deepspeed_multinode_launcher", "zero3_init_flag", "zero3_save_16bit_model",
                       "deepspeed_hostfile", "deepspeed_moe_layer_cls_names"});
  keys.may_change_cost();
}

void read_mesh(JsonKeys& root, ImportedScenario& out) {
  JsonKeys keys = root.section("parallelism_config");
  const auto degree = [&](const char* key, const char* path) {
    const auto value = keys.integer(key, 1);
    if (value) out.set_integer(path, *value, keys.path_of(key));
    return value;
  };
  degree("parallelism_config_tp_size", "layout.tp");
  degree("parallelism_config_cp_size", "layout.cp");
  if (degree("parallelism_config_sp_size", "layout.cp")) {
    out.set_word("layout.cp_method", "all_to_all", "parallelism_config.parallelism_config_sp_size");
  }
  const auto copies = keys.integer("parallelism_config_dp_replicate_size", 1);
  const auto shard = keys.integer("parallelism_config_dp_shard_size", 1);
  if (shard && copies.value_or(1) > 1) {
    out.set_integer("layout.shard_group", *shard, keys.path_of("parallelism_config_dp_shard_size"));
  }
  if (const auto way = keys.text("parallelism_config_cp_comm_strategy")) {
    out.set_word("layout.cp_method", *way == "alltoall" ? "ring" : "all_gather",
                 keys.path_of("parallelism_config_cp_comm_strategy"));
  }
  keys.without_effect({"parallelism_config_sp_backend", "parallelism_config_cp_backend",
                       "parallelism_config_sp_seq_length",
                       "parallelism_config_sp_seq_length_is_variable",
                       "parallelism_config_sp_attn_implementation"});
  keys.may_change_cost();
}

}  // namespace

void read_accelerate(const SortedJson& root_json, const ImportInput& input, ImportedScenario& out) {
  JsonKeys root(root_json, "", out);
  // All processes of all machines.
  if (const auto gpus = root.integer("num_processes", 1)) out.gpus = gpus;
  const auto kind = root.text("distributed_type").value_or("NO");
  if (kind == "FSDP") {
    JsonKeys fsdp = root.section("fsdp_config");
    read_fsdp_section(fsdp, out);
  } else if (kind == "DEEPSPEED") {
    read_deepspeed_section(root, input.accelerate.has_value(), out);
  } else if (kind == "NO" || kind == "MULTI_GPU") {
    set_plain_data_parallel("distributed_type", out);
  } else {
    out.fail(ErrorCode::kNotSupported, "distributed_type", kind + " is not supported yet",
             "FSDP, DEEPSPEED, MULTI_GPU or NO");
  }
  read_mesh(root, out);
  const auto precision = root.raw("mixed_precision");
  const std::string type =
      precision != nullptr && precision->is_string() ? precision->get<std::string>() : "no";
  out.set_word("training.precision", type == "no" ? "fp32" : type, "mixed_precision");
  if (root.raw("fp8_config") != nullptr) {
    out.warnings.emplace_back(
        "fp8_config: the recipe is the framework's default, "
        "training.fp8_recipe says another");
  }
  if (root.raw("dynamo_config") != nullptr) {
    out.set_flag("training.compile", true, "dynamo_config");
  }
  root.without_effect({"compute_environment",
                       "debug",
                       "downcast_bf16",
                       "enable_cpu_affinity",
                       "machine_rank",
                       "main_training_function",
                       "num_machines",
                       "rdzv_backend",
                       "same_network",
                       "tpu_env",
                       "tpu_use_cluster",
                       "tpu_use_sudo",
                       "use_cpu",
                       "main_process_ip",
                       "main_process_port",
                       "gpu_ids",
                       "fsdp_config",
                       "deepspeed_config",
                       "tpu_name",
                       "tpu_zone",
                       "command_file",
                       "commands"});
  root.may_change_cost();
}

}  // namespace stepcast
