// SPDX-License-Identifier: Apache-2.0
// Words: huggingface/trl trl/trainer/sft_config.py and model_config.py, huggingface/peft
// src/peft/tuners/lora/config.py, huggingface/accelerate utils/dataclasses.py, and
// pytorch/torchtune recipes/configs.
#include "recipes/adapter_files.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/framework.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "recipes/launch_script.h"

namespace stepcast {
namespace {

constexpr std::int64_t kAlphaPerRank = 2;  // what PEFT's and torchtune's own examples take

void refuse(Errors& errors, const char* path, std::string message, std::string hint) {
  errors.push_back({ErrorCode::kIllegal, std::move(message), "", path, std::move(hint)});
}

void refuse_offload(const Layout& l, const char* trainer, Errors& errors) {
  // FSDP moves shards and their optimizer to the host, or neither.
  const Offload& offload = l.offload;
  const bool whole_offload = offload.parameters == offload.optimizer &&
                             (offload.parameters == 0 || offload.parameters == 1);
  const bool whole_activations = offload.activations == 0 || offload.activations == 1;
  if (!whole_offload || !whole_activations) {
    refuse(errors, whole_offload ? "layout.offload.activations" : "layout.offload.parameters",
           fmt::format("a part of offload cannot be said in {}", trainer),
           "parameters and optimizer both 0 or both 1; activations 0 or 1");
  }
  if (l.dp == 1 && offload.parameters > 0) {
    refuse(errors, "layout.offload.parameters",
           fmt::format("offload from one GPU cannot be said in {}, which shards nothing there",
                       trainer),
           "0, or several GPUs");
  }
}

// Both trainers lack the rest: they shard parameters over data parallel ranks and nothing else.
Errors common_refusals(const Scenario& s, const char* trainer) {
  Errors errors;
  const Layout& l = s.layout;
  if (!s.training.trains_adapters()) {
    refuse(errors, "training.mode",
           fmt::format("{} trains adapters, and the scenario has none", trainer), "lora or qlora");
  }
  if (s.training.framework != framework_named("fsdp")) {
    refuse(errors, "training.framework",
           fmt::format("{} cannot be said in {}, which runs steps as fsdp does",
                       name_of(s.training.framework), trainer),
           "fsdp");
  }
  for (const auto& [path, degree] : {std::pair("layout.tp", l.tp), std::pair("layout.pp", l.pp),
                                     std::pair("layout.cp", l.cp), std::pair("layout.ep", l.ep)}) {
    if (degree > 1)
      refuse(errors, path, fmt::format("{} cannot be said in {}", degree, trainer), "1");
  }
  const DataType precision = s.training.precision;
  if (precision != DataType::kBf16 && precision != DataType::kFp32 &&
      precision != DataType::kFp16) {
    refuse(errors, "training.precision",
           fmt::format("{} cannot be said in {}", name_of(precision), trainer),
           "bf16, fp16 or fp32");
  }
  if (l.shard_group > 0) {
    refuse(errors, "layout.shard_group",
           fmt::format("{} cannot be said in {}", l.shard_group, trainer), "0, one group of all");
  }
  refuse_offload(l, trainer, errors);
  // FSDP gathers the next layer and reduces the last one beside the work of each, always.
  for (const auto& [path, overlaps] :
       {std::pair("layout.overlap.grad_reduce", l.overlap.grad_reduce),
        std::pair("layout.overlap.param_gather", l.overlap.param_gather)}) {
    if (l.dp > 1 && !overlaps)
      refuse(errors, path, fmt::format("false cannot be said in {}", trainer), "true");
  }
  const Recompute& r = l.recompute;
  const bool whole = r.mode == RecomputeMode::kFull && r.layers == 0 && r.every == 1;
  if (r.mode != RecomputeMode::kNone && !whole) {
    refuse(errors, "layout.recompute",
           fmt::format("a part of recompute cannot be said in {}", trainer), "none or full");
  }
  if (s.model.mlp != Mlp::kSwiglu) {
    refuse(errors, "model",
           fmt::format("the layers of {} have other names than q_proj to down_proj", s.model.name),
           "a model with a gated MLP, as Llama, Qwen or Mistral");
  }
  // Experts have modules in some releases of transformers and packed parameters in others.
  if (s.model.moe && s.training.lora_targets.has(AdapterTarget::kMlp)) {
    refuse(errors, "training.lora_targets",
           fmt::format("adapters of experts cannot be said in {}", trainer),
           "qkv and attention_out");
  }
  return errors;
}

std::vector<std::string> attention_modules(const Scenario& s, const char* output) {
  std::vector<std::string> out;
  const AdapterTargets& targets = s.training.lora_targets;
  if (targets.has(AdapterTarget::kQkv) && s.model.mla) {
    out = {"kv_a_proj_with_mqa", "kv_b_proj"};
    const bool narrow = s.model.mla->q_lora_rank > 0;
    out.insert(out.begin(), narrow ? "q_b_proj" : "q_proj");
    if (narrow) out.insert(out.begin(), "q_a_proj");
  } else if (targets.has(AdapterTarget::kQkv)) {
    out = {"q_proj", "k_proj", "v_proj"};
  }
  if (targets.has(AdapterTarget::kAttentionOut)) out.emplace_back(output);
  return out;
}

bool recomputes(const Scenario& s) { return s.layout.recompute.mode == RecomputeMode::kFull; }
bool is_qlora(const Scenario& s) { return s.training.mode == TrainingMode::kQlora; }

std::int64_t accumulation(const Scenario& s) {
  return s.training.global_batch / (s.layout.micro_batch * s.layout.dp);
}

// YAML of plain objects: every text goes through the emitter, which quotes what must be.
void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, inner] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, inner);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const auto& inner : value) emit(out, inner);
    out << YAML::EndSeq;
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else if (value.is_number_integer()) {
    out << value.get<std::int64_t>();
  } else if (value.is_number()) {
    out << fmt::format("{}", value.get<double>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    const std::string text = value.get<std::string>();
    if (!is_plain_yaml(text)) out << YAML::DoubleQuoted;
    out << text;
  }
}

std::string yaml_of(const Json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

Json accelerate_config(const Scenario& s, const World& world) {
  Json out{{"compute_environment", "LOCAL_MACHINE"},
           {"num_machines", world.nodes},
           {"num_processes", world.nodes * world.gpus_per_node},
           {"machine_rank", 0},
           {"main_training_function", "main"}};
  out["mixed_precision"] =
      s.training.precision == DataType::kFp32 ? "no" : name_of(s.training.precision);
  if (s.layout.dp == 1) {
    out["distributed_type"] = "NO";
  } else if (s.layout.zero == 0) {
    out["distributed_type"] = "MULTI_GPU";
  } else {
    out["distributed_type"] = "FSDP";
    out["fsdp_config"] = {{"fsdp_version", 2},
                          {"fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
                          {"fsdp_reshard_after_forward", s.layout.zero == 3},
                          {"fsdp_offload_params", s.layout.offload.parameters > 0},
                          {"fsdp_activation_checkpointing", false}};
  }
  return out;
}

Json sft_config(const Scenario& s, const std::vector<std::string>& modules) {
  Json out{{"model_name_or_path", s.model.name},
           {"dataset_name", "trl-lib/Capybara"},
           {"output_dir", "out"},
           {"per_device_train_batch_size", s.layout.micro_batch},
           {"gradient_accumulation_steps", accumulation(s)},
           {"max_length", s.training.sequence_length},
           {"packing", true},  // sequences of max_length, none padded, as forecast
           {"packing_strategy", "wrapped"},
           {"bf16", s.training.precision == DataType::kBf16},
           {"fp16", s.training.precision == DataType::kFp16},
           {"gradient_checkpointing", recomputes(s)},
           {"activation_offloading", s.layout.offload.activations > 0},
           {"torch_compile", s.training.compile},
           {"optim", "adamw_torch"},
           {"max_grad_norm", s.training.grad_clip == GradClip::kNone ? 0.0 : 1.0},
           {"use_peft", true},
           {"lora_r", s.training.lora_rank},
           {"lora_alpha", kAlphaPerRank * s.training.lora_rank},
           {"lora_dropout", s.training.lora_dropout},
           {"lora_target_modules", modules},
           {"load_in_4bit", is_qlora(s)}};
  // The plain loss has all logits at once.
  if (s.training.loss_chunks > 1) {
    out["use_liger_kernel"] = true;
  } else {
    out["loss_type"] = "nll";
  }
  out["attn_implementation"] =
      s.training.attention == AttentionKernel::kFlash ? "flash_attention_2" : "eager";
  return out;
}

struct TunedModel {
  const char* stepcast;
  const char* family;     // of torchtune.models
  const char* builder;    // without lora_ or qlora_
  const char* tokenizer;  // of torchtune.models
  const char* type;       // of its checkpoint
};
constexpr TunedModel kTuned[] = {
    {"llama-2-7b", "llama2", "llama2_7b", "llama2.llama2_tokenizer", "LLAMA2"},
    {"llama-2-13b", "llama2", "llama2_13b", "llama2.llama2_tokenizer", "LLAMA2"},
    {"llama-2-70b", "llama2", "llama2_70b", "llama2.llama2_tokenizer", "LLAMA2"},
    {"llama-3-8b", "llama3", "llama3_8b", "llama3.llama3_tokenizer", "LLAMA3"},
    {"llama-3-70b", "llama3", "llama3_70b", "llama3.llama3_tokenizer", "LLAMA3"},
    {"llama-3.1-8b", "llama3_1", "llama3_1_8b", "llama3.llama3_tokenizer", "LLAMA3"},
    {"llama-3.1-70b", "llama3_1", "llama3_1_70b", "llama3.llama3_tokenizer", "LLAMA3"},
    {"llama-3.1-405b", "llama3_1", "llama3_1_405b", "llama3.llama3_tokenizer", "LLAMA3"},
};

Errors torchtune_refusals(const Scenario& s, const TunedModel*& model) {
  Errors errors = common_refusals(s, "torchtune");
  const auto found = std::ranges::find(kTuned, s.model.name, &TunedModel::stepcast);
  model = found == std::end(kTuned) ? nullptr : &*found;
  if (model == nullptr && errors.empty()) {
    std::vector<std::string> names;
    for (const TunedModel& one : kTuned) names.emplace_back(one.stepcast);
    refuse(errors, "model", fmt::format("{} has no builder in torchtune", s.model.name),
           one_of(names));
  }
  if (s.training.attention == AttentionKernel::kUnfused) {
    refuse(errors, "training.attention", "unfused cannot be said in torchtune", "flash");
  }
  if (s.training.precision == DataType::kFp16) {
    refuse(errors, "training.precision", "fp16 cannot be said in torchtune", "bf16 or fp32");
  }
  if (s.layout.zero == 0 && s.layout.dp > 1) {
    refuse(errors, "layout.zero", "torchtune's recipes shard over several GPUs", "2 or 3");
  }
  return errors;
}

}  // namespace

Result<std::vector<LaunchFile>> peft_files(const Scenario& s) {
  if (Errors errors = common_refusals(s, "PEFT"); !errors.empty())
    return failure(std::move(errors));
  const auto world = world_of(s);
  if (!world) return failure(world.error());
  std::vector<std::string> modules = attention_modules(s, "o_proj");
  if (s.training.lora_targets.has(AdapterTarget::kMlp)) {
    modules.insert(modules.end(), {"gate_proj", "up_proj", "down_proj"});
  }
  const Json adapter{{"peft_type", "LORA"},
                     {"task_type", "CAUSAL_LM"},
                     {"base_model_name_or_path", s.model.name},
                     {"r", s.training.lora_rank},
                     {"lora_alpha", kAlphaPerRank * s.training.lora_rank},
                     {"lora_dropout", s.training.lora_dropout},
                     {"bias", "none"},
                     {"target_modules", modules}};
  const std::string how =
      "# accelerate launch --config_file accelerate.yaml -m trl.scripts.sft --config sft.yaml\n"
      "# model_name_or_path and dataset_name are yours to say.\n";
  return std::vector<LaunchFile>{{"accelerate.yaml", yaml_of(accelerate_config(s, *world)), false},
                                 {"sft.yaml", how + yaml_of(sft_config(s, modules)), false},
                                 {"adapter_config.json", json_text(adapter, 2) + "\n", false}};
}

Result<std::vector<LaunchFile>> torchtune_files(const Scenario& s) {
  const TunedModel* model = nullptr;
  if (Errors errors = torchtune_refusals(s, model); !errors.empty())
    return failure(std::move(errors));
  const bool one = s.layout.dp == 1;
  Json out;
  out["output_dir"] = "out";
  out["tokenizer"] = {{"_component_", fmt::format("torchtune.models.{}", model->tokenizer)},
                      {"path", "checkpoint/tokenizer.model"},
                      {"max_seq_len", s.training.sequence_length}};
  out["model"] = {{"_component_", fmt::format("torchtune.models.{}.{}{}", model->family,
                                              is_qlora(s) ? "qlora_" : "lora_", model->builder)},
                  {"lora_attn_modules", attention_modules(s, "output_proj")},
                  {"apply_lora_to_mlp", s.training.lora_targets.has(AdapterTarget::kMlp)},
                  {"apply_lora_to_output", false},
                  {"lora_rank", s.training.lora_rank},
                  {"lora_alpha", kAlphaPerRank * s.training.lora_rank},
                  {"lora_dropout", s.training.lora_dropout}};
  out["checkpointer"] = {{"_component_", "torchtune.training.FullModelHFCheckpointer"},
                         {"checkpoint_dir", "checkpoint"},
                         {"checkpoint_files", Json::array()},
                         {"output_dir", "out"},
                         {"model_type", model->type}};
  out["dataset"] = {{"_component_", "torchtune.datasets.alpaca_cleaned_dataset"}, {"packed", true}};
  out["seed"] = nullptr;
  out["shuffle"] = true;
  out["batch_size"] = s.layout.micro_batch;
  out["gradient_accumulation_steps"] = accumulation(s);
  out["epochs"] = 1;
  out["max_steps_per_epoch"] = nullptr;
  out["optimizer"] = {{"_component_", "torch.optim.AdamW"}, {"fused", true}, {"lr", 3e-4}};
  if (s.training.loss_chunks > 1) {
    out["loss"] = {{"_component_", "torchtune.modules.loss.LinearCrossEntropyLoss"},
                   {"num_output_chunks", s.training.loss_chunks}};
  } else {
    out["loss"] = {{"_component_", "torch.nn.CrossEntropyLoss"}};
  }
  out["clip_grad_norm"] = s.training.grad_clip == GradClip::kNone ? Json() : Json(1.0);
  out["device"] = "cuda";
  out["dtype"] = s.training.precision == DataType::kFp32 ? "fp32" : "bf16";
  out["enable_activation_checkpointing"] = recomputes(s);
  out["enable_activation_offloading"] = s.layout.offload.activations > 0;
  out["compile"] = s.training.compile;
  if (!one) {
    out["fsdp_reshard_after_forward"] = s.layout.zero == 3;
    out["fsdp_cpu_offload"] = s.layout.offload.parameters > 0;
  }
  const std::string how = fmt::format(
      "# tune run {}{} --config torchtune.yaml\n# The checkpoint and its files are yours to say.\n",
      one ? "" : fmt::format("--nproc_per_node {} ", s.cluster.gpus()),
      one ? "lora_finetune_single_device" : "lora_finetune_distributed");
  return std::vector<LaunchFile>{{"torchtune.yaml", how + yaml_of(out), false}};
}

}  // namespace stepcast
