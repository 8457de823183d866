// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "layout/framework.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

constexpr std::int64_t kDefaultSequenceLimit = 4096;
constexpr std::int64_t kLoraRank = 16;  // between PEFT's default 8 and the QLoRA paper's 64

// Sharded parameters without other parallelism are what FSDP is for; else Megatron.
Framework default_framework(const LayoutInput& layout) {
  const bool plain = layout.tp.value_or(1) == 1 && layout.pp.value_or(1) == 1;
  return layout.zero == 3 && plain ? Framework::kFsdp : Framework::kMegatron;
}

bool splits_backward_without_wait(ScheduleKind schedule) {
  return schedule == ScheduleKind::kZb2p || schedule == ScheduleKind::kZbH2 ||
         schedule == ScheduleKind::kZbV;
}

Training resolve_training(const TrainingInput& input, const LayoutInput& layout,
                          const Model& model) {
  Training training;
  training.global_batch = input.global_batch;
  training.sequence_length =
      input.sequence_length.value_or(std::min(model.max_positions, kDefaultSequenceLimit));
  training.precision = input.precision.value_or(DataType::kBf16);
  training.attention = input.attention.value_or(AttentionKernel::kFlash);
  training.optimizer = input.optimizer.value_or("adamw");
  training.framework = input.framework.value_or(default_framework(layout));

  const FrameworkDefaults defaults = defaults_of(training.framework);
  const bool fp32 = defaults.gradients_fp32 || training.precision == DataType::kFp32;
  // fp8 is a type of GEMM inputs: what it accumulates is bf16.
  const DataType half = training.precision == DataType::kFp8 ? DataType::kBf16 : training.precision;
  training.grad_precision = input.grad_precision.value_or(fp32 ? DataType::kFp32 : half);
  training.reduce_precision = input.reduce_precision.value_or(training.grad_precision);
  const bool post = splits_backward_without_wait(layout.schedule.value_or(ScheduleKind::k1F1B));
  training.grad_clip =
      input.grad_clip.value_or(post ? GradClip::kPostValidation : GradClip::kGlobal);
  training.no_sync = input.no_sync.value_or(false);
  training.compile = input.compile.value_or(defaults.compile);
  training.cuda_graphs = input.cuda_graphs.value_or(false);
  training.mode = input.mode.value_or(TrainingMode::kPretrain);
  if (training.trains_adapters()) training.lora_rank = input.lora_rank.value_or(kLoraRank);
  training.software = input.software.value_or("");
  return training;
}

std::int64_t default_virtual_stages(ScheduleKind schedule) {
  return schedule == ScheduleKind::kZbV || schedule == ScheduleKind::kDualPipe ? 2 : 1;
}

void resolve_degrees(Layout& layout, const LayoutInput& input, std::int64_t gpus) {
  layout.tp = input.tp.value_or(1);
  layout.cp = input.cp.value_or(1);
  layout.ep = input.ep.value_or(1);
  layout.pp = input.pp.value_or(1);
  // Each degree is at most 2^20, so the product of three fits.
  const std::int64_t model_parallel = layout.tp * layout.cp * layout.pp;
  layout.dp = input.dp.value_or(std::max<std::int64_t>(1, gpus / model_parallel));
  const bool experts_keep_tp = (layout.dp * layout.cp) % layout.ep == 0;
  layout.etp = input.etp.value_or(experts_keep_tp ? layout.tp : 1);
}

Layout resolve_layout(const LayoutInput& input, Framework framework, std::int64_t gpus) {
  Layout layout;
  resolve_degrees(layout, input, gpus);
  layout.micro_batch = input.micro_batch.value_or(1);
  layout.schedule = input.schedule.value_or(ScheduleKind::k1F1B);
  layout.schedule_file = input.schedule_file;
  layout.virtual_stages = input.virtual_stages.value_or(default_virtual_stages(layout.schedule));
  layout.zero = input.zero.value_or(defaults_of(framework).zero);
  layout.shard_group = input.shard_group.value_or(0);
  if (layout.shard_group == layout.dp * layout.cp) layout.shard_group = 0;
  // Without tensor parallelism there is nothing to cut: the frameworks switch it off.
  layout.sequence_parallel = layout.tp > 1 && input.sequence_parallel.value_or(true);
  layout.recompute = input.recompute.value_or(Recompute{});
  layout.order = input.order.value_or(layout.order);
  layout.overlap = default_overlap(framework, layout.zero, layout.schedule);
  layout.overlap.grad_reduce = input.overlap.grad_reduce.value_or(layout.overlap.grad_reduce);
  layout.overlap.param_gather = input.overlap.param_gather.value_or(layout.overlap.param_gather);
  layout.overlap.tp = input.overlap.tp.value_or(layout.overlap.tp);
  layout.overlap.pp = input.overlap.pp.value_or(layout.overlap.pp);
  layout.offload = input.offload;
  layout.stage_layers = input.stage_layers;
  layout.account_for_embedding = input.account_for_embedding;
  layout.account_for_loss = input.account_for_loss;
  return layout;
}

void override_rules(FrameworkRules& rules, const RulesInput& input) {
  rules.bucket_elements = input.bucket_elements.value_or(rules.bucket_elements);
  rules.gather_bucket_elements =
      input.gather_bucket_elements.value_or(rules.gather_bucket_elements);
  rules.prefetch_units = input.prefetch_units.value_or(rules.prefetch_units);
  rules.host_sync_after_p2p = input.host_sync_after_p2p.value_or(rules.host_sync_after_p2p);
  rules.host_sync_at_batch = input.host_sync_at_batch.value_or(rules.host_sync_at_batch);
  rules.fused_gradient_accumulation =
      input.fused_gradient_accumulation.value_or(rules.fused_gradient_accumulation);
  rules.scatter_gather_p2p = input.scatter_gather_p2p.value_or(rules.scatter_gather_p2p);
}

}  // namespace

void resolve(const TrainingInput& training, const LayoutInput& layout, Scenario& scenario) {
  scenario.training = resolve_training(training, layout, scenario.model);
  scenario.layout = resolve_layout(layout, scenario.training.framework, scenario.cluster.gpus());
  scenario.rules = rules_of(scenario.training, scenario.layout);
  override_rules(scenario.rules, training.rules);
}

Scenario resolve(Model model, Cluster cluster, const TrainingInput& training,
                 const LayoutInput& layout) {
  Scenario scenario;
  scenario.model = std::move(model);
  scenario.cluster = std::move(cluster);
  resolve(training, layout, scenario);
  // A model that states no limit (the native form need not) has positions for its sequences.
  if (!scenario.model.max_positions_stated) {
    scenario.model.max_positions = scenario.training.sequence_length;
  }
  return scenario;
}

}  // namespace stepcast
