// SPDX-License-Identifier: Apache-2.0
// Megatron-LM. Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py,
// megatron/core/model_parallel_config.py, megatron/core/distributed and
// megatron/core/pipeline_parallel/schedules.py.
#include <algorithm>

#include "layout/framework.h"
#include "layout/frameworks/shared_rules.h"

namespace stepcast {
namespace {

// When code came to the main branch that is on by default today.
constexpr Release kAsyncBackward = Release::of(2021, 9);        // commit 16c90445e7
constexpr Release kFusedAccumulation = Release::of(2022, 2);    // gradient_accumulation_fusion
constexpr Release kSequenceParallel = Release::of(2022, 3);     // --sequence-parallel
constexpr Release kFlashAttention = Release::of(2022, 12);      // --use-flash-attn
constexpr Release kOverlappedTransfers = Release::of(2023, 5);  // overlap_p2p_comm
constexpr Release kOverlappedReduction = Release::of(2023, 8);  // --overlap-grad-reduce

// When code came that is used when asked for.
constexpr Release kPipeline = Release::of(2020, 12);         // --pipeline-model-parallel-size
constexpr Release kInterleaving = Release::of(2021, 2);      // num-layers-per-virtual-...-stage
constexpr Release kPartialRecompute = Release::of(2021, 9);  // activations-checkpoint-method block
constexpr Release kSelectiveRecompute = Release::of(2022, 3);  // --recompute-activations
constexpr Release kDistributedOptimizer =
    Release::of(2022, 5);                                  // --use-distributed-optimizer (v3.0)
constexpr Release kTensorOverlap = Release::of(2023, 10);  // --tp-comm-overlap

// --overlap-grad-reduce, --overlap-param-gather and --tp-comm-overlap are off unless given;
// overlap_p2p_comm is on, and forced off outside the interleaved schedule. Megatron with
// zero-bubble schedules (sail-sg/zero-bubble-pipeline-parallelism) posts transfers ahead too.
Overlap overlap(const Training& training, const Layout& layout) {
  // Megatron-FSDP (megatron/core/distributed/fsdp) gathers a unit ahead and reduces behind it.
  if (layout.zero >= 2) return {.grad_reduce = true, .param_gather = true};
  return {.pp = posts_transfers_ahead(layout) && training.release.has(kOverlappedTransfers)};
}

// distributed_data_parallel.py: larger data groups need larger buckets to stay bound by bandwidth
// instead of latency.
std::int64_t bucket_elements(const Layout& layout) {
  return std::max<std::int64_t>(40'000'000, 1'000'000 * layout.dp * layout.cp);
}

FrameworkRules rules(const Training& training, const Layout& layout) {
  FrameworkRules rules = half_precision_rules(training);
  rules.bucket_elements = layout.overlap.grad_reduce ? bucket_elements(layout) : 0;
  rules.gather_bucket_elements = layout.overlap.param_gather ? bucket_elements(layout) : 0;
  // One bucket on every stage but the first, and on later model chunks
  // (distributed_data_parallel.py; training.py, disable_bucketing).
  rules.buckets_at_entrance_only = true;
  // batch_p2p_sync: a device synchronise after each batched send/receive; overlapped ones (the
  // interleaved schedule's) are not batched.
  rules.host_sync_after_p2p = !layout.overlap.pp;
  // --no-gradient-accumulation-fusion switches it off.
  rules.fused_gradient_accumulation = training.release.has(kFusedAccumulation);
  // core/tensor_parallel/layers.py: LinearWithGradAccumulationAndAsyncCommunication. It asks for
  // no flag; --no-async-tensor-model-parallel-allreduce switches it off.
  rules.async_tensor_backward = layout.tp > 1 && training.release.has(kAsyncBackward);
  // Transformer Engine, module/base.py: num_splits of method pipeline.
  rules.reduced_pieces = 4;
  rules.scatter_gather_p2p = scatters_p2p(layout);
  rules.norms_into_products = true;  // TELayerNormColumnParallelLinear
  add_megatron_model(rules);
  return rules;
}

// Transformer Engine, attention.py: since version 1.0 cuDNN's kernels come first from Hopper on.
constexpr Release kCudnnFirst = Release::of(2023, 11);
const char* attention_kernel(Release release, GpuArchitecture architecture) {
  if (traits_of(architecture).prefers_cudnn && release.has(kCudnnFirst)) return "cudnn";
  return flash_attention_package(release, architecture);
}

bool interleaves(ScheduleKind schedule) {
  static const ScheduleKind interleaved = schedule_named("interleaved");
  return schedule == interleaved;
}

// With and without interleaving (schedules.py).
bool offers(ScheduleKind schedule) {
  return schedule == default_schedule() || interleaves(schedule);
}

// What arguments.py demands of its overlap switches.
void check_overlap(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (!findings.trusts({"layout.overlap", "layout.zero", "layout.sequence_parallel"})) return;
  if (l.overlap.param_gather && l.zero == 0) {
    findings.illegal("layout.overlap.param_gather", "nothing is gathered with zero 0",
                     "zero 1, or false");
  } else if (l.overlap.param_gather && !l.overlap.grad_reduce) {
    findings.illegal("layout.overlap.param_gather", "Megatron demands grad_reduce with it",
                     "grad_reduce true, or param_gather false");
  }
  if (l.overlap.tp && l.tp > 1 && !l.sequence_parallel) {
    findings.illegal("layout.overlap.tp", "Megatron demands sequence_parallel with it",
                     "sequence_parallel true, or false here");
  }
}

constexpr std::string_view kMegatronTrainers[] = {"megatronlm", "megatroncore", "mcore",
                                                  "megatronbridge", "nemo"};

// --cp-comm-type: p2p, all_gather, a2a, a2a+p2p.
constexpr ContextMethod kContextMethods[] = {ContextMethod::kRing, ContextMethod::kAllGather,
                                             ContextMethod::kAllToAll,
                                             ContextMethod::kHierarchical};

}  // namespace

extern const FrameworkTraits kMegatron = {
    .name = "megatron",
    .trainers = kMegatronTrainers,
    .zero = 1,
    .compile = true,         // fused bias-GELU, bias-dropout-add and rotary kernels are on
    .gradients_fp32 = true,  // --accumulate-allreduce-grads-in-fp32 is implied by --bf16
    .overlap = overlap,
    .rules = rules,
    .offers = offers,
    .offers_pipeline_overlap = interleaves,  // overlap_p2p_comm is forced off without
    .context_methods = kContextMethods,
    .pairs_passes = true,  // --overlap-moe-expert-parallel-comm
    .attention_kernel = attention_kernel,
    .flash_attention_since = kFlashAttention,
    .sequence_parallel_since = kSequenceParallel,
    .data_overlap_since = kOverlappedReduction,
    .tensor_overlap_since = kTensorOverlap,
    .pipeline_since = kPipeline,
    .interleaving_since = kInterleaving,
    .sharded_optimizer_since = kDistributedOptimizer,
    .selective_recompute_since = kSelectiveRecompute,
    .partial_recompute_since = kPartialRecompute,
    .zero_needs_replicas = true,
    .check_overlap = check_overlap,
    .zero_without_pipeline = 2,
    .most_proposed_zero = 1,
};

}  // namespace stepcast
