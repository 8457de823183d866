// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/data_type.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/layout.h"
#include "layout/nearest.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/import_model.h"
#include "recipes/json_keys.h"
#include "recipes/torchtitan.h"

namespace stepcast {
namespace {

// The section of a converter: [quantize.linear.float8], before release 0.2 [float8].
void read_fp8(JsonKeys& root, JsonKeys& linear, const TorchtitanFp8& usual) {
  ImportedScenario& out = root.imported();
  const std::string converter(usual.converter);
  JsonKeys section = (linear.has(converter.c_str()) ? linear : root).section(converter.c_str());
  const std::string recipe = section.text("recipe_name").value_or(std::string(usual.torchtitan));
  const bool gathers = section.boolean("enable_fsdp_float8_all_gather").value_or(false);
  section.without_effect({"precompute_float8_dynamic_scale_for_fsdp", "filter_fqns",
                          "force_recompute_fp8_weight_in_bwd", "mxfp8_dim1_cast_kernel_choice"});
  section.may_change_cost();
  out.set_word("training.precision", "fp8", "model.converters");
  const auto known = std::ranges::find_if(kTorchtitanFp8, [&](const TorchtitanFp8& row) {
    return converter == row.converter && recipe == row.torchtitan;
  });
  if (known == std::end(kTorchtitanFp8)) {
    out.warnings.push_back(fmt::format("{}: {} is not modelled, {} is taken",
                                       section.path_of("recipe_name"), recipe, usual.stepcast));
  }
  out.set_word("training.fp8_recipe",
               known == std::end(kTorchtitanFp8) ? usual.stepcast : known->stepcast,
               section.path_of("recipe_name"));
  if (gathers) {
    out.set_flag("training.fp8_params", true, section.path_of("enable_fsdp_float8_all_gather"));
  }
}

void read_converters(JsonKeys& root, JsonKeys& model) {
  JsonKeys linear = root.section("quantize").section("linear");
  const SortedJson* converters = model.raw("converters");
  for (const SortedJson& converter :
       converters && converters->is_array() ? *converters : SortedJson()) {
    const std::string what = converter.is_string() ? converter.get<std::string>() : "";
    const std::string last = what.substr(what.rfind('.') + 1);
    const auto usual = std::ranges::find(kTorchtitanFp8, last, &TorchtitanFp8::converter);
    if (usual != std::end(kTorchtitanFp8)) {
      read_fp8(root, linear, *usual);
    } else {
      root.imported().warnings.push_back(fmt::format("model.converters: {} is not modelled", what));
    }
  }
}

void read_model(JsonKeys& root, const ImportInput& input, std::optional<std::int64_t>& layers) {
  ImportedScenario& out = root.imported();
  JsonKeys model = root.section("model");
  const auto name = model.text("name");
  const auto flavor = model.text("flavor");
  read_converters(root, model);
  model.without_effect({"tokenizer_path", "hf_assets_path", "print_after_conversion"});
  model.may_change_cost();
  if (!name && !flavor) return;
  for (const TorchtitanModel& entry : torchtitan_models()) {
    if (name != entry.name || flavor != entry.flavor) continue;
    out.set_word("model", entry.stepcast, "model.flavor");
    if (const auto found = find_model(entry.stepcast, input.models_folder); found && !layers) {
      layers = found->layers;
    }
    return;
  }
  out.warnings.push_back(
      fmt::format("model {} {} is in torchtitan's code, not in the file: --model NAME|PATH",
                  name.value_or(""), flavor.value_or("")));
}

void read_degrees(JsonKeys& keys) {
  ImportedScenario& out = keys.imported();
  const auto set = [&](const char* key, const char* path) {
    const auto value = keys.integer(key, 1);
    if (value) out.set_integer(path, *value, keys.path_of(key));
    return value.value_or(1);
  };
  const std::int64_t tp = set("tensor_parallel_degree", "layout.tp");
  const std::int64_t pp = set("pipeline_parallel_degree", "layout.pp");
  const std::int64_t cp = set("context_parallel_degree", "layout.cp");
  const auto ep = keys.integer("expert_parallel_degree", 1);
  const auto etp = keys.integer("expert_tensor_parallel_degree", 1);
  if (ep.value_or(1) > 1) out.set_integer("layout.ep", *ep, "parallelism.expert_parallel_degree");
  if (ep.value_or(1) > 1 && etp) {
    out.set_integer("layout.etp", *etp, "parallelism.expert_tensor_parallel_degree");
  }
  const std::int64_t copies = keys.integer("data_parallel_replicate_degree", 1).value_or(1);
  std::int64_t shards = keys.integer("data_parallel_shard_degree", -1).value_or(-1);
  if (shards <= 0) {
    const std::int64_t others = capped_product({tp, pp, cp, copies});
    if (!out.gpus) {
      if (copies > 1) {
        out.fail(ErrorCode::kMissingKey, "parallelism.data_parallel_shard_degree",
                 "takes all other GPUs, and their number is not known", "--cluster NAMExNODES");
      }
      return;
    }
    if (*out.gpus % others != 0) return;  // the layout's own check names the degrees
    shards = *out.gpus / others;
  }
  out.set_integer("layout.dp", capped_product({copies, shards}),
                  "parallelism.data_parallel_shard_degree");
  const bool replicates = shards == 1 && cp == 1;  // DistributedDataParallel, or one GPU
  if (replicates) {
    out.set_integer("layout.zero", 0, "parallelism.data_parallel_shard_degree");
  } else if (copies > 1) {
    out.set_integer("layout.shard_group", capped_product({shards, cp}),
                    "parallelism.data_parallel_replicate_degree");
  }
}

struct Chunks {
  std::vector<std::int64_t> layers;  // empty: dealt by count
  std::int64_t count = 0;            // 0: not said
};

Chunks chunks_of_modules(JsonKeys& keys, const char* key) {
  Chunks chunks;
  const SortedJson* parts = keys.raw(key);
  if (!parts || !parts->is_array()) return chunks;
  for (const SortedJson& modules : *parts) {
    std::int64_t layers = 0;
    for (const SortedJson& module : modules) {
      const bool layer = module.is_string() && module.get<std::string>().starts_with("layers.");
      layers += layer ? 1 : 0;
    }
    chunks.layers.push_back(layers);
  }
  chunks.count = static_cast<std::int64_t>(chunks.layers.size());
  return chunks;
}

// ["layers.8", "layers.16"]: a stage begins at each of them.
Chunks chunks_of_split_points(JsonKeys& keys, std::optional<std::int64_t> layers) {
  Chunks chunks;
  const char* key = "pipeline_parallel_split_points";
  const SortedJson* points = keys.raw(key);
  if (!points || !points->is_array() || points->empty()) return chunks;
  std::int64_t before = 0;
  for (const SortedJson& point : *points) {
    const std::string name = point.is_string() ? point.get<std::string>() : "";
    std::int64_t layer = -1;
    if (name.starts_with("layers.")) {
      std::from_chars(name.data() + 7, name.data() + name.size(), layer);
    }
    if (layer < before) {
      keys.imported().fail(ErrorCode::kBadValue, keys.path_of(key),
                           fmt::format("{} is no later layer", json_text(point)),
                           "layers.N, ascending");
      return {};
    }
    chunks.layers.push_back(layer - before);
    before = layer;
  }
  if (!layers) {
    keys.imported().fail(ErrorCode::kMissingKey, keys.path_of(key), "needs the layers of the model",
                         "--model NAME|PATH");
    return {};
  }
  chunks.layers.push_back(*layers - before);
  chunks.count = static_cast<std::int64_t>(chunks.layers.size());
  return chunks;
}

// generate_llm_fqn_per_model_part: embedding and head weigh as many layers as the file says.
Chunks chunks_by_length(JsonKeys& keys, std::optional<std::int64_t> layers, std::int64_t weights) {
  const char* key = "pipeline_parallel_layers_per_stage";
  const auto length = keys.integer(key, 1);
  if (!length) return {};
  if (!layers) {
    keys.imported().fail(ErrorCode::kMissingKey, keys.path_of(key), "needs the layers of the model",
                         "--model NAME|PATH");
    return {};
  }
  return {{}, (*layers + weights + *length - 1) / *length};
}

void set_chunks(JsonKeys& keys, const Chunks& chunks, std::int64_t pp, bool embedding, bool loss,
                bool several) {
  ImportedScenario& out = keys.imported();
  const std::int64_t count = chunks.count > 0 ? chunks.count : pp * (several ? 2 : 1);
  if (count % pp != 0) {
    out.fail(ErrorCode::kIllegal, "parallelism.pipeline_parallel_degree",
             fmt::format("{} chunks do not divide over {} stages", count, pp),
             "as many chunks on every stage");
    return;
  }
  const std::int64_t stages = count / pp;
  if (stages > 1) {
    out.set_integer("layout.virtual_stages", stages, "parallelism.pipeline_parallel_schedule");
  }
  Layout dealt;
  dealt.pp = pp;
  dealt.virtual_stages = stages;
  dealt.account_for_embedding = embedding;
  dealt.account_for_loss = loss;
  std::int64_t sum = 0;
  for (const std::int64_t layers : chunks.layers) sum += layers;
  const bool listed = !chunks.layers.empty();
  const bool enough = sum + (embedding ? 1 : 0) + (loss ? 1 : 0) >= count;
  if (listed && !(enough && deal_layers(sum, dealt) == chunks.layers)) {
    out.set_json("layout.stage_layers", fmt::format("[{}]", fmt::join(chunks.layers, ",")),
                 "parallelism.module_fqns_per_model_part");
    return;
  }
  out.set_flag("layout.account_for_embedding", embedding,
               "parallelism.pipeline_parallel_first_stage_less_layers");
  out.set_flag("layout.account_for_loss", loss,
               "parallelism.pipeline_parallel_last_stage_less_layers");
}

void read_pipeline(JsonKeys& keys, std::optional<std::int64_t> layers) {
  ImportedScenario& out = keys.imported();
  const std::int64_t pp = out.degree("layout.pp");
  std::vector<std::string> names = {"PipelineScheduleSingle", "PipelineScheduleMulti",
                                    "_PipelineScheduleRuntime", "InterleavedZeroBubble",
                                    "LoopedBFS"};
  for (const auto& entry : torchtitan_schedules()) names.emplace_back(entry.torchtitan);
  const auto name = keys.choice("pipeline_parallel_schedule", names).value_or("1F1B");
  const auto file = keys.text("pipeline_parallel_schedule_csv");
  const auto embedding = keys.integer("pipeline_parallel_first_stage_less_layers");
  const auto loss = keys.integer("pipeline_parallel_last_stage_less_layers");
  Chunks chunks = chunks_of_modules(keys, "module_fqns_per_model_part");
  const Chunks renamed = chunks_of_modules(keys, "pipeline_parallel_module_fqns_per_model_part");
  const Chunks points = chunks_of_split_points(keys, layers);
  const Chunks length = chunks_by_length(keys, layers, embedding.value_or(1) + loss.value_or(1));
  const auto micro = keys.integer("pipeline_parallel_microbatch_size", 1);
  if (pp == 1) return;
  for (const Chunks& other : {renamed, points, length}) {
    if (chunks.count == 0) chunks = other;
  }
  out.set_integer("layout.micro_batch", micro.value_or(1),
                  "parallelism.pipeline_parallel_microbatch_size");
  const auto& known = torchtitan_schedules();
  const auto schedule = std::find_if(known.begin(), known.end(),
                                     [&](const auto& entry) { return name == entry.torchtitan; });
  const char* origin = "parallelism.pipeline_parallel_schedule";
  if (file && !file->empty()) {
    out.set_word("layout.schedule", "file:" + *file, "parallelism.pipeline_parallel_schedule_csv");
  } else if (schedule != known.end()) {
    out.set_word("layout.schedule", name_of(schedule->schedule), origin);
  } else {
    out.fail(ErrorCode::kNotSupported, origin, name + " is not supported yet",
             "1F1B, GPipe, Interleaved1F1B, LoopedBFS, ZBVZeroBubble or DualPipeV");
  }
  const bool several = schedule != known.end() && schedule->several_chunks;
  set_chunks(keys, chunks, pp, embedding.value_or(1) > 0, loss.value_or(1) > 0, several);
}

void read_batch(JsonKeys& training) {
  ImportedScenario& out = training.imported();
  auto local = training.integer("local_batch_size", 1);
  if (!local) local = training.integer("batch_size", 1);  // the older name
  std::int64_t stated = training.integer("global_batch_size", -1).value_or(-1);
  // Since 2026 batches are counted in tokens.
  const auto length = training.integer("max_context_length", 1);
  const auto each_tokens = training.integer("num_tokens_per_microbatch_per_dp_rank", 1);
  const auto step_tokens = training.integer("num_tokens_per_train_step", -1);
  if (length && each_tokens) local = std::max<std::int64_t>(*each_tokens / *length, 1);
  if (length && step_tokens.value_or(-1) > 0) stated = *step_tokens / *length;
  const auto dp = out.integer("layout.dp");
  const std::int64_t each = local.value_or(8);
  if (stated > 0) {
    out.set_integer("training.global_batch", stated, "training.global_batch_size");
  } else if (dp) {
    out.set_integer("training.global_batch", capped_product({each, *dp}),
                    "training.local_batch_size");
  } else {
    out.fail(ErrorCode::kMissingKey, "training.global_batch_size",
             "follows from the number of GPUs, which is not known", "--cluster NAMExNODES");
  }
  const auto micro = out.integer("layout.micro_batch");
  if (!micro) {
    out.set_integer("layout.micro_batch", each, "training.local_batch_size");
  } else if (each % *micro != 0) {
    out.fail(ErrorCode::kIllegal, "training.local_batch_size",
             fmt::format("{} is not a multiple of the pipeline's micro-batch {}", each, *micro));
  } else if (stated > 0 && dp && stated > capped_product({each, *dp})) {
    out.warnings.push_back(fmt::format(
        "training.local_batch_size {} fills and drains the pipeline {} times a step; stepcast "
        "does so once",
        each, stated / capped_product({each, *dp})));
  }
}

void read_training(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  JsonKeys training = root.section("training");
  read_batch(training);
  const auto newer = training.integer("max_context_length", 1);
  out.set_integer("training.sequence_length",
                  newer.value_or(training.integer("seq_len", 1).value_or(2048)),
                  newer ? "training.max_context_length" : "training.seq_len");
  const auto type = training.choice("mixed_precision_param", {"bfloat16", "float32"});
  if (!out.find("training.precision")) {
    out.set_word("training.precision", type == "float32" ? "fp32" : "bf16",
                 "training.mixed_precision_param");
  }
  const bool narrow = type != "float32";
  const auto made = training.choice("dtype", {"float32", "bfloat16"});
  if (made == "bfloat16" && !narrow) {
    out.warnings.push_back(
        "training.dtype bfloat16: parameters count as float32, in which "
        "mixed_precision_param computes");
  } else if (made == "bfloat16") {
    out.set_word("training.master_precision", "bf16", "training.dtype");
  }
  const auto reduce = training.choice("mixed_precision_reduce", {"float32", "bfloat16"});
  if (narrow && (reduce == "bfloat16" || made == "bfloat16")) {
    out.set_word("training.reduce_precision", reduce == "bfloat16" ? "bf16" : "fp32",
                 "training.mixed_precision_reduce");
  }
  if (training.boolean("enable_cpu_offload").value_or(false)) {
    out.set_number("layout.offload.parameters", 1, "training.enable_cpu_offload");
    out.set_number("layout.offload.optimizer", 1, "training.enable_cpu_offload");
  }
  const bool older = training.boolean("compile").value_or(false);
  JsonKeys compile = root.section("compile");
  out.set_flag("training.compile", compile.boolean("enable").value_or(older), "compile.enable");
  compile.without_effect({"components", "backend"});
  compile.may_change_cost();
  training.number("max_norm");
  training.without_effect({"steps", "dataset", "dataset_path", "gc_freq", "gc_debug", "seed",
                           "deterministic", "tensor_parallel_loss", "warmup_steps",
                           "data_parallel_degree"});
  training.may_change_cost();
}

void read_checkpointing(JsonKeys& root) {
  ImportedScenario& out = root.imported();
  JsonKeys section = root.section("activation_checkpoint");
  const auto mode = section.choice("mode", {"none", "full", "selective", "memory_budget"});
  const auto option = section.text("selective_ac_option");
  const bool stops = section.boolean("early_stop").value_or(false);
  if (stops) out.set_flag("training.early_stop", true, "activation_checkpoint.early_stop");
  const char* origin = "activation_checkpoint.mode";
  section.without_effect({"per_op_sac_force_recompute_mm_shapes_by_fqns", "preserve_rng_state",
                          "determinism_check", "debug", "visualize_memory_budget_pareto",
                          "memory_budget"});
  section.may_change_cost();
  if (!mode) out.warnings.push_back("activation_checkpoint.mode: the default, selective");
  const std::string way = option.value_or("2");
  if (mode == "none") {
    out.set_word("layout.recompute", "none", origin);
  } else if (mode == "full") {
    out.set_word("layout.recompute", "full", origin);
  } else if (mode == "memory_budget") {
    out.fail(ErrorCode::kNotSupported, origin, "memory_budget is not supported yet",
             "none, full or selective");
  } else if (way == "op") {
    out.set_json("layout.recompute", R"({"mode":"selective","modules":["torchtitan_op"]})",
                 "activation_checkpoint.selective_ac_option");
  } else {
    std::int64_t every = 0;
    std::from_chars(way.data(), way.data() + way.size(), every);
    if (every < 1) {
      out.fail(ErrorCode::kBadValue, "activation_checkpoint.selective_ac_option",
               fmt::format("'{}' is not accepted", way), "op, or a count of layers");
      return;
    }
    out.set_json("layout.recompute", fmt::format(R"({{"mode":"full","every":{}}})", every),
                 "activation_checkpoint.selective_ac_option");
  }
}

void read_parallelism(JsonKeys& root, std::optional<std::int64_t> layers) {
  ImportedScenario& out = root.imported();
  JsonKeys keys = root.section("parallelism");
  read_degrees(keys);
  read_pipeline(keys, layers);
  const auto policy = keys.choice("fsdp_reshard_after_forward", {"default", "always", "never"});
  const bool piped = out.integer("layout.pp").value_or(1) > 1;
  const bool keeps = policy == "never" || (policy.value_or("default") == "default" && piped);
  if (!out.integer("layout.zero")) {
    out.set_integer("layout.zero", keeps ? 2 : 3, "parallelism.fsdp_reshard_after_forward");
  }
  if (const auto sequence = keys.boolean("enable_sequence_parallel")) {
    out.set_flag("layout.sequence_parallel", *sequence, "parallelism.enable_sequence_parallel");
  }
  bool overlap = keys.boolean("enable_async_tensor_parallel").value_or(false);
  JsonKeys experimental = root.section("experimental");
  overlap = experimental.boolean("enable_async_tensor_parallel").value_or(overlap);
  experimental.without_effect({"custom_import", "custom_args_module", "custom_model_path"});
  experimental.may_change_cost();
  out.set_flag("layout.overlap.tp", overlap, "parallelism.enable_async_tensor_parallel");
  const auto rotate = keys.choice("context_parallel_rotate_method", {"allgather", "alltoall"});
  if (out.integer("layout.cp").value_or(1) > 1) {
    out.set_word("layout.cp_method", rotate == "alltoall" ? "ring" : "all_gather",
                 "parallelism.context_parallel_rotate_method");
  }
  keys.without_effect({"enable_compiled_autograd", "disable_loss_parallel"});
  keys.may_change_cost();
}

}  // namespace

ImportedScenario read_torchtitan(const ImportInput& input) {
  ImportedScenario out;
  out.file = input.file;
  out.gpus = input.gpus;
  const bool is_json = input.text.find_first_not_of(" \t\r\n") != std::string::npos &&
                       input.text[input.text.find_first_not_of(" \t\r\n")] == '{';
  const auto text =
      is_json ? Result<std::string>(input.text) : toml_to_json(input.text, input.file);
  if (!text) {
    out.errors = text.error();
    return out;
  }
  const SortedJson document = parse_json_object(*text, false, out);
  if (!document.is_object()) return out;
  JsonKeys root(document, "", out);
  out.set_word("training.framework", "fsdp", "");
  std::optional<std::int64_t> layers = input.layers;
  read_model(root, input, layers);
  read_parallelism(root, layers);
  read_training(root);
  read_checkpointing(root);
  JsonKeys optimizer = root.section("optimizer");
  const auto name = optimizer.text("name");
  if (name && *name != "Adam" && *name != "AdamW") {
    out.fail(ErrorCode::kNotSupported, "optimizer.name", *name + " is not supported yet",
             "AdamW; torchtitan's Muon has no word here: state training.optimizer in the scenario");
  }
  optimizer.without_effect(
      {"lr", "beta1", "beta2", "eps", "weight_decay", "implementation", "fused"});
  optimizer.may_change_cost();
  root.without_effect({"job", "profiling", "metrics", "lr_scheduler", "checkpoint", "comm",
                       "memory_estimation", "validation", "debug"});
  root.may_change_cost();
  for (const Setting& remark : settings_in_remarks(input.text)) out.settings.push_back(remark);
  return out;
}

Errors check_torchtitan(const Scenario& s) {
  Errors errors;
  const Layout& l = s.layout;
  const auto add = [&](const char* path, std::string message, const char* hint) {
    errors.push_back(
        {ErrorCode::kIllegal, "torchtitan refuses " + std::move(message), "", path, hint});
  };
  if (l.overlap.tp && !s.training.compile) {
    add("layout.overlap.tp", "asynchronous tensor parallelism without compile",
        "training.compile true");
  }
  if (l.zero > 0 && (l.dp * l.cp == 1 || l.shard_group == 1)) {
    add("layout.zero", "sharding among one rank, where it wraps nothing", "zero 0");
  }
  if (l.zero == 0 && l.cp > 1) {
    add("layout.zero", fmt::format("replicated parameters with cp = {}", l.cp),
        "zero 2 or 3: ranks that share a sequence shard them");
  }
  if (l.shard_group > 0 && l.shard_group % l.cp != 0) {
    add("layout.shard_group", fmt::format("a shard group of {} with cp = {}", l.shard_group, l.cp),
        "a multiple of cp");
  }
  if (s.training.precision == DataType::kFp16) {
    add("training.precision", "fp16", "bf16 or fp32");
  }
  if (s.training.precision != DataType::kFp8) return errors;
  const auto recipe =
      std::ranges::find(kTorchtitanFp8, s.training.fp8_recipe, &TorchtitanFp8::stepcast);
  if (recipe == std::end(kTorchtitanFp8)) {
    add("training.fp8_recipe", "the fp8 recipe " + s.training.fp8_recipe,
        "current, rowwise or mxfp8");
  } else if (s.training.fp8_params && !recipe->gathers) {
    add("training.fp8_params",
        "parameters gathered in fp8 with the recipe " + s.training.fp8_recipe,
        "false, or recipe current");
  }
  return errors;
}

}  // namespace stepcast
