// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/choices.h"
#include "layout/scenario.h"
#include "recipes/deepspeed.h"
#include "recipes/launch_format.h"

namespace stepcast {
namespace {

void add_offload(const Scenario& s, Json& zero) {
  const Offload& offload = s.layout.offload;
  if (offload.optimizer > 0) {
    Json to = {{"device", name_of(offload.optimizer_device)}, {"pin_memory", true}};
    if (offload.optimizer_device == OffloadDevice::kNvme) to["nvme_path"] = "/local_nvme";
    if (offload.optimizer < 1) to["ratio"] = offload.optimizer;
    zero["offload_optimizer"] = to;
  }
  if (offload.parameters == 1 && s.layout.zero == 3) {
    Json to = {{"device", name_of(offload.parameter_device)}, {"pin_memory", true}};
    if (offload.parameter_device == OffloadDevice::kNvme) to["nvme_path"] = "/local_nvme";
    zero["offload_param"] = to;
  }
}

Json zero_object(const Scenario& s) {
  const Layout& l = s.layout;
  Json zero = {{"stage", l.zero}};
  if (l.zero == 0) return zero;
  zero["overlap_comm"] = l.overlap.grad_reduce;
  zero["contiguous_gradients"] = true;
  if (s.rules.bucket_elements > 0) zero["reduce_bucket_size"] = s.rules.bucket_elements;
  if (s.rules.gather_bucket_elements > 0) {
    zero["allgather_bucket_size"] = s.rules.gather_bucket_elements;
  }
  if (l.zero == 3 && s.rules.prefetch_units == 0) zero["stage3_prefetch_bucket_size"] = 0;
  if (l.zero == 3 && l.shard_group > 0) zero["mics_shard_size"] = l.shard_group;
  if (l.zero == 3 && s.training.optimizer == Optimizer::kMuon) zero["reduce_scatter"] = false;
  add_offload(s, zero);
  return zero;
}

const char* optimizer_type(Optimizer optimizer) {
  if (optimizer == Optimizer::kMuon) return "Muon";
  return optimizer == Optimizer::kSgd ? "SGD" : "AdamW";
}

Json remark_object(const std::vector<Setting>& remarks) {
  Json out = Json::object();
  for (const Setting& remark : remarks) out[remark.path] = Json::parse(remark.value);
  return out;
}

}  // namespace

std::string write_deepspeed(const Scenario& s, const std::vector<Setting>& remarks) {
  const Training& t = s.training;
  const Layout& l = s.layout;
  Json out = {{"train_batch_size", t.global_batch},
              {"train_micro_batch_size_per_gpu", l.micro_batch},
              {"gradient_accumulation_steps", s.micro_batches()},
              {"gradient_clipping", t.grad_clip == GradClip::kNone ? 0.0 : 1.0},
              {"bf16", {{"enabled", t.precision == DataType::kBf16}}},
              {"fp16", {{"enabled", t.precision == DataType::kFp16}}},
              {"communication_data_type", name_of(t.reduce_precision)},
              {"data_types", {{"grad_accum_dtype", name_of(t.grad_precision)}}},
              {"optimizer", {{"type", optimizer_type(t.optimizer)}, {"params", {{"lr", 1e-4}}}}},
              {"zero_optimization", zero_object(s)}};
  if (l.tp > 1) out["tensor_parallel"] = {{"autotp_size", l.tp}};
  if (l.pp > 1) {
    const bool full = l.recompute.mode == RecomputeMode::kFull && l.recompute.every == 1 &&
                      l.recompute.layers == 0;
    out["pipeline"] = {{"stages", l.pp}, {"activation_checkpoint_interval", full ? 1 : 0}};
  }
  if (!remarks.empty()) out["stepcast"] = remark_object(remarks);
  return json_text(out, 2) + "\n";
}

namespace {

// JSON, with a mistake in it too: it is to be told as such.
bool is_json(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == '{';
}

Result<std::string> write_settings(const Scenario& scenario, Launcher,
                                   const std::vector<Setting>& remarks, const DataFolders&) {
  return write_deepspeed(scenario, remarks);
}

LaunchProgram program_with(const std::string& settings) {
  return {{"TRAIN_SCRIPT=\"${TRAIN_SCRIPT:?names your training program}\"",
           fmt::format("CONFIG=\"${{CONFIG:-{}}}\"", settings)},
          "\"$TRAIN_SCRIPT\"",
          {{"TRAIN_ARGS", {"--deepspeed", "--deepspeed_config \"$CONFIG\""}}}};
}

std::vector<std::string> left_to_program(const Scenario& scenario) {
  std::vector<std::string> left = {"training.sequence_length",
                                   "training.attention",
                                   "training.compile",
                                   "training.cuda_graphs",
                                   "training.no_sync",
                                   "training.mode",
                                   "training.lora_rank",
                                   "training.lora_dropout",
                                   "layout.sequence_parallel",
                                   "layout.order",
                                   "layout.account_for_embedding",
                                   "layout.account_for_loss",
                                   "layout.stage_layers"};
  // Experts and their ranks are arguments of the model's layers.
  if (scenario.model.moe) left.insert(left.end(), {"layout.ep", "layout.etp"});
  // The pipeline's own checkpointing is a key; elsewhere the model's code decides.
  if (scenario.layout.pp == 1) left.emplace_back("layout.recompute");
  return left;
}

}  // namespace

extern const LaunchFormat kDeepSpeedSettings = {
    .name = "deepspeed",
    .program = "DeepSpeed",
    .framework = "deepspeed",
    .recognises = is_json,
    .read = read_deepspeed,
    .check = check_deepspeed,
    .settings_file = "ds_config.json",
    .write = write_settings,
    .program_with = program_with,
    .trains_adapters = true,
    .left_to_program = left_to_program,
};

}  // namespace stepcast
