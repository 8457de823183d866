// SPDX-License-Identifier: Apache-2.0
// PyTorch's trainers: fully sharded data parallelism, and with zero 0 DistributedDataParallel or a
// model alone on its GPU. Sources: pytorch/pytorch, torch/distributed/fsdp, with
// pytorch/torchtitan's and llm-foundry's settings.
#include "layout/framework.h"

#include "layout/framework_rules.h"
#include "layout/frameworks/shared_rules.h"

namespace stepcast {
namespace {

// Sharded parameters without other parallelism are what FSDP is for, and the trainers of adapters
// (PEFT, torchtune) run PyTorch on one GPU or FSDP on several.
bool default_for(const Training& training, const Layout& layout) {
  if (training.outer.any()) return true;  // no other framework has them
  return (layout.zero == 3 || training.trains_adapters()) && layout.tp == 1 && layout.pp == 1;
}

Overlap overlap(const Training&, const Layout& layout) {
  return {.grad_reduce = true, .param_gather = layout.zero > 0};
}

// fully_shard keeps parameters apart: foreach_all_gather_copy_out and
// foreach_reduce_scatter_copy_in (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py).
// FullyShardedDataParallel before it holds a flat parameter: autograd fills a flat gradient by
// copies, and _runtime_utils.py
// (_reduce_grad) divides it before it is reduced.
constexpr Release kFullyShard = Release::of(2024, 4);  // PyTorch 2.3

// A trainer of PyTorch runs the model's code alike, whoever shards it.
FrameworkRules trainer_rules(const Training& training) {
  FrameworkRules rules;
  rules.records_streams = records_streams(training);
  // llm-foundry trains with flash-attn's loss and takes metrics from the logits
  // (llmfoundry/models/mpt/modeling_mpt.py: loss_fn, use_train_metrics), torchtitan with PyTorch's.
  rules.fuses_loss = rules.takes_loss_metrics = !training.release.has(kFullyShard);
  // Weights are of the type in which the model was made, and there is no copy beside them.
  rules.bf16_parameters = training.master_precision != DataType::kFp32;
  rules.keeps_master_weights = false;
  // torch/_inductor/fx_passes/micro_pipeline_tp.py fuses a product with the reduction it feeds.
  rules.sums_input_gradients = true;
  rules.muon_keeps_packed = true;
  // Autograd keeps what DTensor's redistribution gathered.
  rules.keeps_gathered_inputs = true;
  return rules;
}

// DistributedDataParallel, or a model alone on its GPU. Weights in fp32 are cast by autocast, and
// autograd keeps the 16-bit copies up to the backward: they are as many bytes as 16-bit parameters
// beside an fp32 copy.
FrameworkRules replicated_rules(const Training& training, const Layout& layout) {
  FrameworkRules rules = trainer_rules(training);
  if (!rules.bf16_parameters && training.wide() != DataType::kFp32) {
    rules.bf16_parameters = rules.keeps_master_weights = true;
  }
  rules.placeholder_gradients = false;
  if (layout.overlap.grad_reduce) rules.bucket_elements = ddp_bucket_elements(training);
  return rules;
}

// The unit is a block, gathered one ahead.
FrameworkRules rules(const Training& training, const Layout& layout) {
  if (layout.zero == 0) return replicated_rules(training, layout);
  FrameworkRules rules = trainer_rules(training);
  // torch/distributed/pipelining/stage.py: backward_maybe_with_nosync.
  rules.keeps_units = layout.pp > 1;
  rules.sums_wide_gradients = training.release.has(kFullyShard);
  rules.copies_gathered_units = training.release.has(kFullyShard);
  rules.flattens_gradients = !training.release.has(kFullyShard);
  rules.gradients_by_unit = true;
  rules.casts_to_reduce = true;  // MixedPrecision.reduce_dtype
  // SHARD_GRAD_OP keeps shards as FULL_SHARD does; what it leaves gathered is a 16-bit buffer.
  rules.shards_parameters_with_gradients = true;
  rules.sums_on_host = true;  // _fsdp_param_group.py: CPUOffloadPolicy
  // torchtitan/distributed/flex_shard/dist_muon.py: DistMuon with Owned() matrices.
  rules.muon_deal = MuonDeal::kOwners;
  return rules;
}

bool offers(ScheduleKind) { return true; }

// torch.nn.functional.scaled_dot_product_attention took flash-attn's version 2 in PyTorch 2.2
// (pytorch/pytorch, aten/src/ATen/native/transformers/cuda/flash_attn). cuDNN's kernels stand
// behind it in the order of choice (sdp_utils.cpp). On AMD's GPUs it runs AOTriton's
// (RL-Align/RL-Kernel issue 39, pytorch/pytorch issue 135431), and not flash-attn's.
constexpr Release kSecondFlash = Release::of(2024, 1);
const char* attention_kernel(Release release, GpuArchitecture architecture) {
  if (traits_of(architecture).runs_rccl) return "triton";
  if (!traits_of(architecture).has_flash_attention) return "cudnn";
  return release.has(kSecondFlash) ? "fa2" : "fa1";
}

// PyTorch 2.1 of October 2023 stops early in checkpoints that are not reentrant
// (set_checkpoint_early_stop). llm-foundry, the trainer of reference then, still ran its benchmarks
// with 1.13 (submit_benchmarks.py), so it counts from the next month.
constexpr Release kEarlyStop = Release::of(2023, 11);
// torchtitan's activation_checkpoint.early_stop, which is off (pytorch/torchtitan#1580).
constexpr Release kRunsOn = Release::of(2025, 9);
// FSDP is built from parts of PyTorch, which came one by one.
constexpr Release kTensorParallel = Release::of(2024, 4);  // 2.3: DTensor's parallelize_module
constexpr Release kPipelining = Release::of(2024, 7);      // 2.4: torch.distributed.pipelining
constexpr Release kAsyncTensor = Release::of(2024, 10);    // 2.5: async tensor parallelism

constexpr std::string_view kFsdpTrainers[] = {"fsdp2", "torchtitan", "llmfoundry", "composer"};

// torch.distributed.tensor.experimental, set_rotate_method: alltoall sends blocks around.
constexpr ContextMethod kContextMethods[] = {ContextMethod::kRing, ContextMethod::kAllGather};

// torchtitan's DistMuon works on whole matrices, so that all modes are the same one.
constexpr MuonMode kMuonModes[] = {MuonMode::kDuplicated};

}  // namespace

extern const FrameworkTraits kFsdp = {
    .name = "fsdp",
    .trainers = kFsdpTrainers,
    .default_for = default_for,
    .default_when = "tp = pp = 1 and zero is 3 or adapters are trained, or islands train apart",
    .zero = 3,
    .shards_among_several = true,
    // torch.compile is opt-in in PyTorch, torchtitan (compile.enable) and llm-foundry
    // (compile_config).
    .compile = false,
    .gradients_fp32 = true,  // parameters and gradients are fp32 shards
    .overlap = overlap,
    .rules = rules,
    .offers = offers,
    .offers_pipeline_overlap = offers,
    .context_methods = kContextMethods,
    .shards_in_groups = true,  // a mesh of two dimensions
    .outer_steps = true,       // torchft's DiLoCo and its fragments (torchtitan, semi_sync_method)
    .recomputes_operations = true,
    .has_muon = true,
    .muon_modes = kMuonModes,
    .offload = {.parameters = true, .together = true},  // CPUOffloadPolicy
    .has_narrow_weights = true,    // model.to(bfloat16); torchtitan's training.dtype
    .has_small_optimizers = true,  // bitsandbytes, torchao, torch.optim.Adafactor
    .has_fp4 = true,               // torchao: NVFP4LinearConverter
    .keeps_wide_layers = true,     // filter_fqns of torchtitan's converters
    // torch/distributed/tensor/experimental/_attention.py: _SDPAMerger and
    // _templated_ring_attention_backward with convert_to_f32; torchtitan's models repeat keys and
    // values for each query head before (repeat_kv).
    .ring_adds_in_fp32 = true,
    .attention_kernel = attention_kernel,
    .fp8_recipe = "current",  // torchao's default, "tensorwise"
    .tensor_parallel_since = kTensorParallel,
    .tensor_overlap_since = kAsyncTensor,
    .pipeline_since = kPipelining,
    .checkpoint_stops_early_since = kEarlyStop,
    .checkpoint_runs_on_since = kRunsOn,
    .has_zero_1 = false,
    .least_proposed_zero = 2,
    // torchtitan keeps parameters gathered on a pipeline (reshard_after_forward "default") and
    // gives a rank two stages where a schedule takes several (distributed/pipeline_parallel.py);
    // trainers of adapters (PEFT, TRL, torchtune) shard over data parallel ranks alone.
    .most_proposed_zero_on_pipelines = 2,
    .most_proposed_virtual_stages = 2,
    .proposes_spread_adapters = false,
    // torchtitan recomputes all layers, none, or each n-th, not so many of the first.
    .proposes_recomputed_layers = false,
};

}  // namespace stepcast
