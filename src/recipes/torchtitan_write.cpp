// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "layout/data_folders.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/import_model.h"
#include "model/import_native.h"
#include "recipes/launch_format.h"
#include "recipes/torchtitan.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// Modules of each chunk, by the names in torchtitan's decoders.
SortedJson chunk_modules(const Scenario& s) {
  SortedJson out = SortedJson::array();
  std::int64_t layer = 0;
  const auto dealt = deal_layers(s.model.layers, s.layout);
  for (std::size_t chunk = 0; chunk < dealt.size(); ++chunk) {
    SortedJson modules = SortedJson::array();
    if (chunk == 0) modules.push_back("tok_embeddings");
    for (std::int64_t i = 0; i < dealt[chunk]; ++i) {
      modules.push_back(fmt::format("layers.{}", layer++));
    }
    if (chunk + 1 == dealt.size()) {
      modules.push_back("norm");
      modules.push_back("output");
    }
    out.push_back(modules);
  }
  return out;
}

SortedJson parallelism(const Scenario& s) {
  const Layout& l = s.layout;
  const std::int64_t sharers = l.zero == 0 ? l.cp : l.dp * l.cp;
  const std::int64_t group = l.shard_group > 0 ? l.shard_group : sharers;
  const std::int64_t copies = l.dp * l.cp / group;
  SortedJson out = {{"data_parallel_replicate_degree", copies},
                    {"data_parallel_shard_degree", l.dp / copies},
                    {"fsdp_reshard_after_forward", l.zero == 3 ? "always" : "never"},
                    {"tensor_parallel_degree", l.tp},
                    {"enable_async_tensor_parallel", l.overlap.tp},
                    {"pipeline_parallel_degree", l.pp},
                    {"context_parallel_degree", l.cp}};
  if (l.cp > 1) {
    out["context_parallel_rotate_method"] =
        l.cp_method == ContextMethod::kRing ? "alltoall" : "allgather";
  }
  if (s.model.moe) {
    out["expert_parallel_degree"] = l.ep;
    out["expert_tensor_parallel_degree"] = l.etp;
  }
  if (l.pp == 1) return out;
  const auto& known = torchtitan_schedules();
  const auto schedule = std::find_if(
      known.begin(), known.end(), [&](const auto& entry) { return entry.schedule == l.schedule; });
  if (schedule != known.end()) out["pipeline_parallel_schedule"] = schedule->torchtitan;
  // It deals a file's chunks round the stages, never back up.
  const bool straight = pipeline_of(l).placement == Placement::kStraight;
  if (rules_of(l.schedule).from_file && straight) {
    out["pipeline_parallel_schedule"] =
        l.virtual_stages > 1 ? "PipelineScheduleMulti" : "PipelineScheduleSingle";
    out["pipeline_parallel_schedule_csv"] = l.schedule_file;
  }
  out["pipeline_parallel_microbatch_size"] = l.micro_batch;
  out["module_fqns_per_model_part"] = chunk_modules(s);
  out["pipeline_parallel_first_stage_less_layers"] = l.account_for_embedding ? 1 : 0;
  out["pipeline_parallel_last_stage_less_layers"] = l.account_for_loss ? 1 : 0;
  return out;
}

SortedJson activation_checkpoint(const Scenario& s) {
  const Recompute& recompute = s.layout.recompute;
  const bool full = recompute.mode == RecomputeMode::kFull && recompute.layers == 0;
  // Newer than the other keys, so it is written where it says something (pytorch/torchtitan#1580).
  const bool stops = s.training.early_stop && !s.training.compile;
  if (full) {
    SortedJson out = {{"mode", "full"}};
    if (stops) out["early_stop"] = true;
    if (recompute.every == 1) return out;
    out["mode"] = "selective";
    out["selective_ac_option"] = fmt::format("{}", recompute.every);
    return out;
  }
  const bool by_operation = recompute.mode == RecomputeMode::kSelective &&
                            recompute.modules.has(RecomputedModule::kOperations) &&
                            recompute.layers == 0 && recompute.every == 1;
  if (!by_operation) return {{"mode", "none"}};
  SortedJson out = {{"mode", "selective"}, {"selective_ac_option", "op"}};
  if (stops) out["early_stop"] = true;
  return out;
}

// torchao's two ways, by the names of their converters and recipes.
void add_fp8(const Training& t, SortedJson& out) {
  if (t.precision != DataType::kFp8) return;
  const auto found = std::ranges::find(kTorchtitanFp8, t.fp8_recipe, &TorchtitanFp8::stepcast);
  if (found == std::end(kTorchtitanFp8)) return;  // it has none of this recipe
  out["model"]["converters"] = {fmt::format("quantize.linear.{}", found->converter)};
  SortedJson section = {{"recipe_name", found->torchtitan}, {"filter_fqns", {"output"}}};
  if (found->gathers) {
    section["enable_fsdp_float8_all_gather"] = t.fp8_params;
    section["precompute_float8_dynamic_scale_for_fsdp"] = t.fp8_params;
  }
  out["quantize"]["linear"][found->converter] = section;
}

const char* torch_name(DataType type) { return type == DataType::kFp32 ? "float32" : "bfloat16"; }

SortedJson training(const Scenario& s) {
  const Training& t = s.training;
  const Layout& l = s.layout;
  const bool offload = l.offload.parameters == 1 && l.offload.optimizer == 1;
  SortedJson out = {{"local_batch_size", l.pp > 1 ? t.global_batch / l.dp : l.micro_batch},
                    {"global_batch_size", t.global_batch},
                    {"seq_len", t.sequence_length},
                    {"max_norm", 1.0},
                    {"mixed_precision_param", torch_name(t.wide())},
                    {"mixed_precision_reduce", torch_name(t.reduce_precision)},
                    {"enable_cpu_offload", offload},
                    {"steps", 20},
                    {"dataset", "c4_test"}};
  if (t.master_precision != DataType::kFp32) out["dtype"] = torch_name(t.master_precision);
  return out;
}

const TorchtitanModel* registered(const Model& model, const std::string& models_folder) {
  for (const TorchtitanModel& entry : torchtitan_models()) {
    if (entry.stepcast != model.name) continue;
    const auto shipped = find_model(entry.stepcast, models_folder);
    if (shipped && to_native_json(*shipped) == to_native_json(model)) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string write_torchtitan(const Scenario& s, const std::vector<Setting>& remarks,
                             const std::string& models_folder) {
  SortedJson out = {
      {"job", {{"description", fmt::format("{} by stepcast export", in_comment(s.model.name))}}},
      {"optimizer", {{"name", "AdamW"}, {"lr", 1e-4}}},
      {"training", training(s)},
      {"parallelism", parallelism(s)},
      {"activation_checkpoint", activation_checkpoint(s)},
      {"compile", {{"enable", s.training.compile}}}};
  const TorchtitanModel* model = registered(s.model, models_folder);
  if (model) out["model"] = {{"name", model->name}, {"flavor", model->flavor}};
  add_fp8(s.training, out);
  std::string comments = remark_lines(remarks);
  if (!model) {
    comments += fmt::format("# [model] name and flavor: register {} in torchtitan first.\n",
                            in_comment(s.model.name));
  }
  return comments + json_to_toml(json_text(out));
}

const std::vector<TorchtitanModel>& torchtitan_models() {
  static const std::vector<TorchtitanModel> models = {
      {"llama3", "8B", "llama-3.1-8b"},
      {"llama3", "70B", "llama-3.1-70b"},
      {"llama3", "405B", "llama-3.1-405b"},
  };
  return models;
}

const std::vector<TorchtitanSchedule>& torchtitan_schedules() {
  static const std::vector<TorchtitanSchedule> schedules = {
      {"1F1B", schedule_named("1f1b"), false},
      {"GPipe", schedule_named("gpipe"), false},
      {"Interleaved1F1B", schedule_named("interleaved"), true},
      {"LoopedBFS", schedule_named("looped-bfs"), true},
      {"ZBVZeroBubble", schedule_named("zb-v"), true},
      {"DualPipeV", schedule_named("dualpipev"), true},
  };
  return schedules;
}

namespace {

// The TOML file, or the JSON of `job.print_config`.
bool has_its_tables(const std::string& text) {
  const auto document = parse_json(text, "", {.comments = true});
  if (document && document->is_object()) return document->contains("parallelism");
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text[begin] == '{') return false;
  return std::ranges::any_of(
      std::initializer_list<const char*>{"\n[training]", "\n[parallelism]", "\n[model]"},
      [&](const char* table) { return ("\n" + text).find(table) != std::string::npos; });
}

Result<std::string> write_settings(const Scenario& scenario, Launcher,
                                   const std::vector<Setting>& remarks,
                                   const DataFolders& folders) {
  return write_torchtitan(scenario, remarks, folders.models);
}

LaunchProgram program_with(const std::string& settings) {
  return {{fmt::format("CONFIG=\"${{CONFIG:-{}}}\"", settings)},
          "-m torchtitan.train",
          {{"TRAIN_ARGS", {"--job.config_file \"$CONFIG\""}}}};
}

}  // namespace

extern const LaunchFormat kTorchtitanSettings = {
    .name = "torchtitan",
    .program = "torchtitan",
    .framework = "fsdp",
    .recognises = has_its_tables,
    .read = read_torchtitan,
    .check = check_torchtitan,
    .settings_file = "torchtitan.toml",
    .write = write_settings,
    .program_with = program_with,
    .left_to_program =
        [](const Scenario&) {
          return std::vector<std::string>{"training.no_sync", "training.cuda_graphs"};
        },
};

}  // namespace stepcast
