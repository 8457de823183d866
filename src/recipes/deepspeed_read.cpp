// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/layout.h"
#include "layout/nearest.h"
#include "layout/scenario.h"
#include "recipes/deepspeed.h"
#include "recipes/json_keys.h"

namespace stepcast {
namespace {

std::optional<std::int64_t> replicas_of(const ImportedScenario& out) {
  const std::int64_t model_parallel = out.degree("layout.tp") * out.degree("layout.pp");
  if (!out.gpus || *out.gpus % model_parallel != 0) return std::nullopt;
  return *out.gpus / model_parallel;
}

void fail_batch(ImportedScenario& out, std::string message) {
  out.fail(ErrorCode::kIllegal, "train_batch_size", std::move(message),
           "train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * "
           "data parallel ranks");
}

// Two of the three sizes give the third, as in _set_batch_related_parameters.
void read_batch(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  const auto train = root.integer("train_batch_size", 1);
  const auto micro = root.integer("train_micro_batch_size_per_gpu", 1);
  const auto steps = root.integer("gradient_accumulation_steps", 1);
  const auto replicas = replicas_of(out);
  if (root.said_auto()) {
    out.warnings.push_back(
        "batch sizes that are \"auto\" come from the Trainer: --global-batch, --micro-batch");
  }
  if (train && micro && steps) {
    const std::int64_t product = capped_product({*micro, *steps, replicas.value_or(1)});
    if (replicas ? product != *train : *train % product != 0) {
      fail_batch(out, fmt::format("{} is not {} * {} * {}", *train, *micro, *steps,
                                  replicas ? fmt::format("{}", *replicas) : "ranks"));
    }
  }
  const bool derived = !(train && micro);
  if (derived && (train || micro) && !replicas) {
    out.fail(ErrorCode::kMissingKey, train ? "train_micro_batch_size_per_gpu" : "train_batch_size",
             "follows from the number of GPUs, which is not known", "--cluster NAMExNODES");
    return;
  }
  if (train) out.set_integer("training.global_batch", *train, "train_batch_size");
  if (micro) out.set_integer("layout.micro_batch", *micro, "train_micro_batch_size_per_gpu");
  if (!derived || !replicas) return;
  const std::int64_t per_step = capped_product({steps.value_or(1), *replicas});
  if (micro) {
    out.set_integer("training.global_batch", capped_product({*micro, per_step}),
                    "gradient_accumulation_steps");
  } else if (train && *train % per_step == 0) {
    out.set_integer("layout.micro_batch", *train / per_step, "gradient_accumulation_steps");
  } else if (train) {
    fail_batch(out, fmt::format("{} is not a multiple of {} steps * {} ranks", *train,
                                steps.value_or(1), *replicas));
  }
}

enum class Half { kOff, kOn, kByTrainer };

// {"enabled": true}; without the key it is on when the section is there. "auto" is what the
// Trainer of Hugging Face says.
Half enabled(JsonKeys& root, const char* key) {
  if (!root.has(key)) return Half::kOff;
  JsonKeys section = root.section(key);
  const auto stated = section.boolean("enabled");
  const Half on = section.said_auto()     ? Half::kByTrainer
                  : stated.value_or(true) ? Half::kOn
                                          : Half::kOff;
  section.without_effect({"loss_scale", "auto_cast", "initial_scale_power", "loss_scale_window",
                          "hysteresis", "consecutive_hysteresis", "min_loss_scale",
                          "check_grad_overflow"});
  section.may_change_cost();
  return on;
}

void read_precision(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  const Half of_bf16 = enabled(root, root.has("bfloat16") ? "bfloat16" : "bf16");
  const Half of_fp16 = enabled(root, "fp16");
  // The file of Hugging Face's documentation leaves both to the Trainer.
  const bool by_trainer = of_bf16 == Half::kByTrainer || of_fp16 == Half::kByTrainer;
  const bool bf16 = of_bf16 == Half::kOn || (of_bf16 == Half::kByTrainer && of_fp16 != Half::kOn);
  const bool fp16 = of_fp16 == Half::kOn || (of_fp16 == Half::kByTrainer && of_bf16 == Half::kOff);
  if (by_trainer) {
    out.warnings.push_back(
        fmt::format("a precision that is \"auto\" comes from the Trainer: {} is taken, --precision "
                    "says another",
                    bf16 ? "bf16" : "fp16"));
  }
  if (bf16 && fp16) {
    out.fail(ErrorCode::kIllegal, "fp16.enabled", "does not go with bf16", "one of them");
    return;
  }
  out.set_word("training.precision",
               bf16   ? "bf16"
               : fp16 ? "fp16"
                      : "fp32",
               bf16 ? "bf16.enabled" : "fp16.enabled");
  const std::vector<std::string> types = {"fp32", "fp16", "bf16"};
  JsonKeys data_types = root.section("data_types");
  if (const auto type = data_types.choice("grad_accum_dtype", types)) {
    out.set_word("training.grad_precision", *type, "data_types.grad_accum_dtype");
  }
  data_types.may_change_cost();
  if (const auto type = root.choice("communication_data_type", types)) {
    out.set_word("training.reduce_precision", *type, "communication_data_type");
  }
}

void read_offload(JsonKeys& zero) {
  ImportedScenario& out = zero.imported();
  const auto read = [&](const char* key, const char* path, const char* where) {
    if (!zero.has(key)) return;
    JsonKeys section = zero.section(key);
    const auto device = section.choice("device", {"none", "cpu", "nvme"}).value_or("none");
    const double ratio = section.number("ratio").value_or(1.0);
    section.without_effect({"pin_memory", "nvme_path", "buffer_count", "buffer_size",
                            "pipeline_read", "pipeline_write", "fast_init", "max_in_cpu",
                            "pipeline"});
    section.may_change_cost();
    if (device == "none") return;
    out.set_number(path, ratio, zero.path_of(key));
    if (device == "nvme") out.set_word(where, "nvme", zero.path_of(key));
  };
  read("offload_optimizer", "layout.offload.optimizer", "layout.offload.optimizer_device");
  read("offload_param", "layout.offload.parameters", "layout.offload.parameter_device");
  if (zero.boolean("cpu_offload").value_or(false)) {
    out.set_number("layout.offload.optimizer", 1, zero.path_of("cpu_offload"));
  }
}

void warn_if(JsonKeys& zero, bool condition, const char* key, const char* what) {
  if (condition) {
    zero.imported().warnings.push_back(fmt::format("{}: {}", zero.path_of(key), what));
  }
}

// Notes keys that were read but change nothing: keys of another stage, and values that match what
// is done anyway.
void note_unused(JsonKeys& zero, std::int64_t stage) {
  ImportedScenario& out = zero.imported();
  const auto unused = [&](const char* key, bool without_effect) {
    if (without_effect && zero.has(key)) out.without_effect.push_back(zero.path_of(key));
  };
  for (const char* key : {"overlap_comm", "reduce_bucket_size", "allgather_bucket_size"}) {
    unused(key, stage == 0);
  }
  unused("stage3_prefetch_bucket_size", stage < 3);
  for (const char* key : {"contiguous_gradients", "reduce_scatter"}) {
    unused(key, zero.boolean(key).value_or(false));
  }
  unused("zero_hpz_partition_size", zero.integer("zero_hpz_partition_size").value_or(2) <= 1);
  unused("mics_shard_size", zero.integer("mics_shard_size", -1).value_or(1) <= 0);
  for (const char* key :
       {"zero_quantized_weights", "zero_quantized_gradients", "zero_quantized_nontrainable_weights",
        "round_robin_gradients", "cpu_offload"}) {
    unused(key, !zero.boolean(key).value_or(true));
  }
}

// Returns the stage.
std::int64_t read_zero(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  JsonKeys zero = root.section("zero_optimization");
  const std::int64_t stage = zero.integer("stage").value_or(0);
  out.set_integer("layout.zero", stage, "zero_optimization.stage");
  if (const auto overlap = zero.boolean("overlap_comm"); overlap && stage > 0) {
    out.set_flag("layout.overlap.grad_reduce", *overlap, "zero_optimization.overlap_comm");
    if (stage == 3) {
      out.set_flag("layout.overlap.param_gather", *overlap, "zero_optimization.overlap_comm");
    }
  }
  if (const auto size = zero.integer("reduce_bucket_size"); size && stage > 0) {
    out.set_integer("training.bucket_elements", *size, "zero_optimization.reduce_bucket_size");
  }
  if (const auto size = zero.integer("allgather_bucket_size"); size && stage > 0) {
    out.set_integer("training.gather_bucket_elements", *size,
                    "zero_optimization.allgather_bucket_size");
  }
  if (const auto size = zero.integer("stage3_prefetch_bucket_size"); size && stage == 3) {
    if (*size == 0) {
      out.set_integer("training.prefetch_units", 0,
                      "zero_optimization.stage3_prefetch_bucket_size");
    } else {
      warn_if(zero, true, "stage3_prefetch_bucket_size",
              "stepcast prefetches whole layers (training.prefetch_units), one unless said");
    }
  }
  const auto shard = zero.integer("mics_shard_size", -1).value_or(-1);
  if (shard > 0) {
    out.set_integer("layout.shard_group", shard, "zero_optimization.mics_shard_size");
  }
  note_unused(zero, stage);
  read_offload(zero);
  warn_if(zero, !zero.boolean("contiguous_gradients").value_or(true), "contiguous_gradients",
          "without it gradients fragment memory, which is not modelled");
  warn_if(zero, zero.integer("zero_hpz_partition_size").value_or(1) > 1, "zero_hpz_partition_size",
          "ZeRO++'s second partition is not modelled");
  for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients",
                          "zero_quantized_nontrainable_weights", "round_robin_gradients"}) {
    warn_if(zero, zero.boolean(key).value_or(false), key, "is not modelled");
  }
  zero.without_effect({"sub_group_size", "stage3_gather_16bit_weights_on_model_save",
                       "stage3_gather_fp16_weights_on_model_save", "load_from_fp32_weights",
                       "elastic_checkpoint", "ignore_unused_parameters", "allgather_partitions",
                       "use_multi_rank_bucket_allreduce", "memory_efficient_linear",
                       "override_module_apply", "legacy_stage1", "pipeline_loading_checkpoint"});
  zero.may_change_cost();
  return stage;
}

void read_model_parallel(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  JsonKeys tensor = root.section("tensor_parallel");
  if (const auto size = tensor.integer("autotp_size"); size.value_or(0) > 0) {
    out.set_integer("layout.tp", *size, "tensor_parallel.autotp_size");
  }
  if (tensor.boolean("tp_overlap_comm").value_or(false)) {
    out.set_flag("layout.overlap.tp", true, "tensor_parallel.tp_overlap_comm");
  }
  tensor.without_effect(
      {"dtype", "replace_with_kernel_inject", "keep_module_on_host", "tp_grain_size"});
  tensor.may_change_cost();
  JsonKeys pipeline = root.section("pipeline");
  if (const SortedJson* stages = pipeline.raw("stages"); stages && stages->is_number()) {
    if (const auto count = pipeline.integer("stages", 1)) {
      out.set_integer("layout.pp", *count, "pipeline.stages");
    }
  }
  if (const auto every = pipeline.integer("activation_checkpoint_interval");
      every.value_or(0) > 0) {
    out.set_word("layout.recompute", "full", "pipeline.activation_checkpoint_interval");
    if (*every > 1) {
      out.warnings.push_back(fmt::format(
          "pipeline.activation_checkpoint_interval {}: stepcast keeps the input of every layer",
          *every));
    }
  }
  pipeline.without_effect({"seed_layers"});
  pipeline.may_change_cost();
}

// Muon needs gradients whole (stage_1_and_2.py and stage3.py).
void read_muon(JsonKeys& root, JsonKeys& optimizer, std::int64_t stage) {
  root.imported().set_word("training.optimizer", "muon", "optimizer.type");
  JsonKeys parameters = optimizer.section("params");
  warn_if(parameters, parameters.text("ns_method").value_or("gram") != "gram", "ns_method",
          "only gram is forecast");
  JsonKeys zero = root.section("zero_optimization");
  warn_if(zero, stage == 3 && zero.boolean("reduce_scatter").value_or(true), "reduce_scatter",
          "DeepSpeed refuses Muon with stage 3 unless it is false");
}

void read_optimizer(JsonKeys& root, std::int64_t stage) {
  ImportedScenario& out = root.imported();
  const double clip = root.number("gradient_clipping").value_or(0);
  out.set_word("training.grad_clip", clip > 0 ? "global" : "none", "gradient_clipping");
  JsonKeys optimizer = root.section("optimizer");
  const auto type = optimizer.text("type");
  optimizer.without_effect({"params", "legacy_fusion"});
  if (type == "Muon" || type == "muon") return read_muon(root, optimizer, stage);
  JsonKeys zero = root.section("zero_optimization");
  warn_if(zero, !zero.boolean("reduce_scatter").value_or(true), "reduce_scatter",
          "stepcast reduce-scatters");
  if (type == "SGD") {
    out.set_word("training.optimizer", "sgd", "optimizer.type");
  } else if (type && *type != "Adam" && *type != "AdamW") {
    out.fail(ErrorCode::kNotSupported, "optimizer.type", *type + " is not supported yet",
             "Adam, AdamW, SGD or Muon");
  }
}

void read_checkpointing(JsonKeys& root) {
  JsonKeys section = root.section("activation_checkpointing");
  for (const char* key : {"partition_activations", "cpu_checkpointing"}) {
    warn_if(section, section.boolean(key).value_or(false), key, "is not modelled");
  }
  section.without_effect({"contiguous_memory_optimization", "number_checkpoints",
                          "synchronize_checkpoint_boundary", "profile"});
  section.may_change_cost();
}

void read_remarks(JsonKeys& root) {
  const SortedJson* remarks = root.raw("stepcast");
  if (!remarks || !remarks->is_object()) return;
  for (const auto& [path, value] : remarks->items()) {
    root.imported().set_json(path, json_text(value), "");
  }
}

}  // namespace

ImportedScenario read_deepspeed(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const SortedJson document = parse_json_object(input.text, true, out);
  if (!document.is_object()) return out;
  JsonKeys root(document, "", out);
  out.set_word("training.framework", "deepspeed", "");
  read_model_parallel(root);
  const std::int64_t stage = read_zero(root);
  read_precision(root);
  read_optimizer(root, stage);
  read_batch(root);
  read_checkpointing(root);
  read_remarks(root);
  root.without_effect({"scheduler",
                       "steps_per_print",
                       "wall_clock_breakdown",
                       "tensorboard",
                       "wandb",
                       "comet",
                       "csv_monitor",
                       "flops_profiler",
                       "comms_logger",
                       "dump_state",
                       "checkpoint",
                       "dataloader_drop_last",
                       "seed",
                       "prescale_gradients",
                       "gradient_predivide_factor",
                       "aio",
                       "zero_allow_untested_optimizer",
                       "zero_force_ds_cpu_optimizer",
                       "memory_breakdown",
                       "disable_allgather",
                       "use_data_before_expert_parallel_",
                       "elasticity"});
  root.may_change_cost();
  return out;
}

Errors check_deepspeed(const Scenario& s) {
  Errors errors;
  const Layout& l = s.layout;
  const auto add = [&](const char* path, std::string message, const char* hint) {
    errors.push_back(
        {ErrorCode::kIllegal, "DeepSpeed refuses " + std::move(message), "", path, hint});
  };
  if (l.zero == 3 && l.tp > 1) {
    add("layout.zero", fmt::format("zero 3 with tp = {} (autotp takes 0 to 2)", l.tp),
        "zero 2, or tp 1");
  }
  if (l.cp > 1) {
    add("layout.cp", fmt::format("cp = {}: it has no context parallelism", l.cp), "cp 1");
  }
  return errors;
}

}  // namespace stepcast
