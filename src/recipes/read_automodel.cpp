// SPDX-License-Identifier: Apache-2.0
// Recipes of NeMo AutoModel (NVIDIA-NeMo/Automodel, examples/llm_finetune and examples/benchmark,
// 2025 and 2026).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/json_tree.h"
#include "recipes/hugging_face_keys.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

// "none" is null here.
SortedJson without_none(SortedJson value) {
  if (value.is_object() || value.is_array()) {
    for (SortedJson& one : value) one = without_none(std::move(one));
    return value;
  }
  if (value == "none" || value == "None") return {};
  return value;
}

struct AutomodelSchedule {
  std::string_view automodel, stepcast;
  bool has_chunks;
};
// torch.distributed.pipelining's names, in small letters.
constexpr std::array kAutomodelSchedules{AutomodelSchedule{"1f1b", "1f1b", false},
                                         AutomodelSchedule{"gpipe", "gpipe", false},
                                         AutomodelSchedule{"interleaved1f1b", "interleaved", true},
                                         AutomodelSchedule{"loopedbfs", "looped-bfs", true},
                                         AutomodelSchedule{"interleavedzerobubble", "zb-1p", false},
                                         AutomodelSchedule{"zbvzerobubble", "zb-v", true},
                                         AutomodelSchedule{"dualpipev", "dualpipev", true}};

void read_automodel_degrees(JsonKeys& keys, ImportedScenario& out) {
  keys.set_count("layout.tp", "tp_size");
  keys.set_count("layout.cp", "cp_size");
  keys.set_count("layout.pp", "pp_size");
  keys.set_count("layout.ep", "ep_size");
  keys.set_count("layout.dp", "dp_size");
  if (const auto copies = keys.integer("dp_replicate_size", 1); copies.value_or(1) > 1) {
    const std::int64_t shared = out.degree("layout.tp") * out.degree("layout.pp") * *copies;
    if (out.gpus && *out.gpus % shared == 0) {
      out.set_integer("layout.shard_group", *out.gpus / shared, keys.path_of("dp_replicate_size"));
    } else {
      out.warnings.push_back(keys.path_of("dp_replicate_size") +
                             ": how many ranks share a copy follows from the number of GPUs: "
                             "--set layout.shard_group=N");
    }
  }
  if (const auto sequence = keys.boolean("sequence_parallel")) {
    out.set_flag("layout.sequence_parallel", *sequence, keys.path_of("sequence_parallel"));
  }
}

void read_automodel_strategy(JsonKeys& keys, ImportedScenario& out) {
  const std::string target = keys.text("_target_").value_or("");
  const std::string strategy = keys.text("strategy").value_or("");
  const auto is = [&](const char* word, const char* manager) {
    return strategy == word || target.find(manager) != std::string::npos;
  };
  const std::string key = keys.path_of(target.empty() ? "strategy" : "_target_");
  // On one GPU it shards nothing (FSDP2Manager.parallelize).
  if (is("ddp", "DDPManager") || out.gpus == 1) {
    set_plain_data_parallel(key.c_str(), out);
  } else {
    out.set_word("training.framework", "fsdp", "");
    out.set_integer("layout.zero", 3, key);
  }
  if (is("megatron_fsdp", "MegatronFSDPManager")) {
    out.warnings.push_back(key + ": Megatron-FSDP is taken as FSDP2");
  }
  keys.without_effect({"backend", "mp_policy", "offload_policy_dtype"});
}

// Stages and chunks; newer recipes have the section inside `distributed`.
void read_automodel_pipeline(JsonKeys& root, JsonKeys& distributed, const ImportInput& input,
                             ImportedScenario& out) {
  JsonKeys section =
      distributed.has("pipeline") ? distributed.section("pipeline") : root.section("autopipeline");
  root.has("autopipeline");
  const std::int64_t stages = out.degree("layout.pp");
  std::string name = section.text("pp_schedule").value_or("1f1b");
  const auto micro = section.integer("pp_microbatch_size", 1);
  const auto layers = section.integer("layers_per_stage", 1);
  section.without_effect({"_target_", "scale_grads_in_schedule", "patch_inner_model",
                          "patch_causal_lm_model", "round_virtual_stages_to_pp_multiple", "dtype",
                          "pp_schedule_csv"});
  section.may_change_cost();
  if (stages == 1) return;
  if (micro) out.set_integer("layout.micro_batch", *micro, section.path_of("pp_microbatch_size"));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto known = std::ranges::find(kAutomodelSchedules, name, &AutomodelSchedule::automodel);
  const std::string key = section.path_of("pp_schedule");
  if (known == kAutomodelSchedules.end()) {
    out.fail(ErrorCode::kNotSupported, key, name + " is not supported yet");
    return;
  }
  out.set_word("layout.schedule", known->stepcast, key);
  if (!layers || !known->has_chunks) return;
  if (input.layers && *input.layers >= stages * *layers) {
    out.set_integer("layout.virtual_stages", *input.layers / (stages * *layers),
                    section.path_of("layers_per_stage"));
  } else {
    out.warnings.push_back(fmt::format(
        "{} is {}: the chunks of a stage follow from the model's layers, --vpp says them",
        section.path_of("layers_per_stage"), *layers));
  }
}

bool is_fsdp(const ImportedScenario& imported) {
  const Setting* framework = imported.find("training.framework");
  return framework != nullptr && framework->value.find("fsdp") != std::string::npos;
}

// FSDP updates parameters in the type in which they are made, nearly always the checkpoint's bf16,
// and its policy reduces in fp32 (components/distributed/config.py).
void read_automodel_type(JsonKeys& model, ImportedScenario& out) {
  // transformers renamed the key.
  const char* name = model.has("dtype") ? "dtype" : "torch_dtype";
  const std::string type = model.text(name).value_or("auto");
  const std::string key = model.path_of(name);
  if (!is_fsdp(out)) return;
  if (type.find("bf") != std::string::npos || type == "auto") {
    out.set_word("training.master_precision", "bf16", key);
    out.set_word("training.reduce_precision", "fp32", key);
    if (type == "auto") out.warnings.push_back(key + ": the checkpoint counts as bfloat16");
  } else if (type.find("32") == std::string::npos) {
    out.fail(ErrorCode::kBadValue, key, type + " is no type that FSDP updates parameters in",
             "auto, bfloat16 or float32");
  }
}

void read_automodel_model(JsonKeys& root, ImportedScenario& out) {
  JsonKeys model = root.section("model");
  auto name = model.text("pretrained_model_name_or_path");
  std::string key = "model.pretrained_model_name_or_path";
  if (const SortedJson* config = model.raw("config"); !name && config != nullptr) {
    key = "model.config";
    if (config->is_string()) name = config->get<std::string>();
    if (config->is_object() && config->contains("pretrained_model_name_or_path") &&
        (*config)["pretrained_model_name_or_path"].is_string()) {
      key += ".pretrained_model_name_or_path";
      name = (*config)["pretrained_model_name_or_path"].get<std::string>();
    }
  }
  if (name) out.set_word("model", *name, key);
  read_automodel_type(model, out);
  JsonKeys backend = model.section("backend");
  std::string dispatcher = backend.text("dispatcher").value_or("torch");
  if (backend.boolean("enable_deepep").value_or(false)) dispatcher = "deepep";
  if (dispatcher != "torch") {
    out.warnings.push_back(
        fmt::format("model.backend: tokens travel by {}, which `--set "
                    "model.moe.dispatcher={}` says to a forecast",
                    dispatcher, dispatcher));
  }
  backend.without_effect({"_target_", "attn", "linear", "rms_norm", "rope_fusion", "experts",
                          "fake_balanced_gate", "fake_gate_noise", "gate_precision",
                          "enable_hf_state_dict_adapter", "enable_fsdp_optimizations",
                          "enable_fsdp_optimization"});
  backend.may_change_cost();
  model.without_effect({"_target_", "trust_remote_code", "is_meta_device", "use_liger_kernel",
                        "output_hidden_states", "attn_implementation", "use_sdpa_patching",
                        "force_hf", "text_config"});
  model.may_change_cost();
}

void read_automodel_adapters(JsonKeys& root, ImportedScenario& out) {
  if (!root.has("peft")) return;
  JsonKeys peft = root.section("peft");
  const bool quantized = root.has("quantization");
  set_lora(quantized, peft.integer("dim", 1), "peft.dim", out);
  set_lora_dropout(peft.number("dropout"), "peft.dropout", out);
  const bool all = peft.boolean("match_all_linear").value_or(false);
  const SortedJson* targets = peft.raw("target_modules");
  if (!all) set_lora_targets(targets, "peft.target_modules", out);
  peft.without_effect({"_target_", "alpha", "use_triton", "exclude_modules", "dropout_position",
                       "lora_A_init", "lora_dtype"});
  peft.may_change_cost();
}

void read_automodel_length(JsonKeys& root, ImportedScenario& out) {
  JsonKeys packed = root.section("packed_sequence");
  JsonKeys dataset = root.section("dataset");
  const auto size = packed.integer("packed_sequence_size");
  auto length = dataset.integer("seq_len", 1);
  const auto most = dataset.integer("seq_length", 1);
  if (!length) length = most;
  packed.without_effect({"split_across_pack", "max_packs"});
  if (size.value_or(0) > 0) {
    out.set_integer("training.sequence_length", *size, "packed_sequence.packed_sequence_size");
  } else if (length) {
    out.set_integer("training.sequence_length", *length, "dataset.seq_len");
  }
}

// Keys of data, logs, checkpoints and learning rates.
constexpr const char* kAutomodelWithoutCost[] = {"seed",
                                                 "recipe",
                                                 "benchmark",
                                                 "dist_env",
                                                 "rng",
                                                 "checkpoint",
                                                 "dataloader",
                                                 "optimizer",
                                                 "lr_scheduler",
                                                 "validation_dataset",
                                                 "validation_dataloader",
                                                 "wandb",
                                                 "mlflow",
                                                 "logger",
                                                 "slurm",
                                                 "tokenizer",
                                                 "profiling",
                                                 "nsys",
                                                 "ci",
                                                 "clip_grad_norm"};

}  // namespace

void read_automodel(const SortedJson& root_json, const ImportInput& input, ImportedScenario& out) {
  const SortedJson cleaned = without_none(root_json);
  JsonKeys root(cleaned, "", out);
  JsonKeys distributed = root.section("distributed");
  read_automodel_strategy(distributed, out);
  read_automodel_model(root, out);
  read_automodel_degrees(distributed, out);
  JsonKeys steps = root.section("step_scheduler");
  steps.set_count("training.global_batch", "global_batch_size");
  steps.set_count("layout.micro_batch", "local_batch_size");
  steps.without_effect({"ckpt_every_steps", "val_every_steps", "num_epochs", "max_steps",
                        "gc_every_steps", "log_remote_every_steps"});
  steps.may_change_cost();
  read_automodel_pipeline(root, distributed, input, out);
  JsonKeys parallelizer = root.section("parallelizer");
  const bool again = distributed.boolean("activation_checkpointing").value_or(false) ||
                     parallelizer.boolean("activation_checkpointing").value_or(false);
  const char* origin = "distributed.activation_checkpointing";
  out.set_word("layout.recompute", again ? "full" : "none", origin);
  // Its checkpoints are torch.utils.checkpoint's, which stop early.
  if (again && is_fsdp(out)) out.set_flag("training.early_stop", true, origin);
  if (parallelizer.boolean("reshard_after_forward") == false) {
    out.set_integer("layout.zero", 2, "parallelizer.reshard_after_forward");
  }
  parallelizer.without_effect({"_target_", "lm_head_precision", "wrap_outer_model"});
  distributed.may_change_cost();
  read_automodel_adapters(root, out);
  JsonKeys loss = root.section("loss_fn");
  const std::string kind = loss.text("_target_").value_or("");
  if (kind.find("FusedLinearCrossEntropy") != std::string::npos) {
    out.set_integer("training.loss_chunks", kLinearLossChunks, "loss_fn._target_");
  }
  read_automodel_length(root, out);
  const bool fp8 = root.has("fp8") && root.section("fp8").boolean("enabled").value_or(true);
  out.set_word("training.precision", fp8 ? "fp8" : "bf16", fp8 ? "fp8" : "");
  root.without_effect(kAutomodelWithoutCost);
  root.may_change_cost();
}

}  // namespace stepcast
