// SPDX-License-Identifier: Apache-2.0
// Megatron-LM. Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py,
// megatron/core/model_parallel_config.py, megatron/core/distributed and
// megatron/core/pipeline_parallel/schedules.py.
#include <algorithm>

#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/frameworks/shared_rules.h"
#include "layout/scenario.h"

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

// When code came that joins kernels of a layer of experts: --moe-permute-fusion and
// --moe-router-fusion, which its recipes set (Megatron-Bridge, scripts/performance).
constexpr Release kFusedPermutation = Release::of(2025, 2);
constexpr Release kFusedRouter = Release::of(2025, 8);

// --cross-entropy-loss-fusion is off unless given. NeMo 2.0 (GPTConfig.cross_entropy_loss_fusion)
// and Megatron-Bridge behind it, whose containers go by the month, give it.
constexpr Release kFusedLoss = Release::of(2024, 9);
// Transformer Engine's fused grouped MLP takes biases (Megatron-Bridge's recipes of 26.08). Before
// it experts.py adds them in _apply_bias, and fused_bias_swiglu.py refuses a bias where an
// activation is weighted.
constexpr Release kBiasedMlp = Release::of(2026, 8);

// megatron/core/transformer/moe: router.py, token_dispatcher.py, moe_utils.py; Transformer Engine's
// module/grouped_linear.py and csrc/extensions/gemm.cpp (te_general_grouped_gemm).
ExpertHost expert_host(Release release) {
  ExpertHost host;
  // Fused: views of two results, tokens of each expert (2), the loss, its scaling and its sum for
  // the log (3), and two casts. Unfused: also softmax, top-k, scatter twice, masks and sums, some
  // fifteen kernels in all.
  host.routing_operators = release.has(kFusedRouter) ? 9 : 21;
  // Fused: three kernels make the map of rows, and allocate. Unfused: masks, nonzero, sort,
  // gathers, an index_add.
  host.moving_operators = release.has(kFusedPermutation) ? 4 : 8;
  // _apply_bias: a view of the expert's rows, and the bias times the weights, added.
  host.bias_operators = 3;
  // preprocess(): sums and views by rank and expert (8), four copies to the host and what awaits
  // them (8).
  host.counting_operators = 16;
  // combined_1f1b.py: before and behind each exchange another node begins, and those of weight
  // gradients beside: a stream, two events, inputs taken off the graph and marked, an entry into
  // autograd.
  host.pairing_operators = 40;
  // A view of its rows, the result's, and the product on one of four streams.
  host.product_calls = 3;
  host.block_scale_calls = 2;  // the scales of both operands in the order that the product reads
  // Data and scales of both directions are allocated and made a tensor, and the kernel.
  host.cast_calls = 4;
  host.scale_calls = 4;  // the largest element, and three kernels that make a scale of it
  // Each expert's weight is a parameter of its own: autograd hands its gradient over, and the hook
  // of distributed_data_parallel.py (_make_backward_post_hook) runs on it.
  host.weight_operators = 1;
  // get_weight_workspace, and telling its quantiser which copies are wanted.
  host.weight_copy_calls = 2;
  // Forward te.Linear takes the host more than twice as long in fp8 as in 16 bits
  // (NVIDIA/TransformerEngine issue 761), where it takes 115 us (pull request 1191): 230 us are
  // eight operators beyond the launches of the product and of its cast.
  host.scaled_operators = 8;
  return host;
}

FrameworkRules rules(const Training& training, const Layout& layout) {
  FrameworkRules rules = half_precision_rules(training);
  rules.records_streams = records_streams(training);
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
  // Its modules are packed, and each has one adapter beside it (Megatron-Bridge, peft/lora.py:
  // linear_qkv, linear_fc1), which is what its recipes take; canonical_lora.py has one for each
  // part.
  rules.adapts_packed_matrices = true;
  // One ParallelLinearAdapter beside all of TEGroupedLinear (peft/lora.py, merge: each of num_gemms
  // weights takes it).
  rules.shares_expert_adapters = true;
  rules.norms_into_products = true;  // TELayerNormColumnParallelLinear
  // core/optimizer/cpu_offloading: HybridDeviceOptimizer has parameters of its own on the host, and
  // the device keeps the fp32 weights that come back.
  rules.offloads_moments = true;
  // Ranks that Slurm starts have their part of the cores; torchrun sets OMP_NUM_THREADS to 1.
  rules.host_threads = 0;
  rules.expert_host = expert_host(training.release);
  add_megatron_model(rules);
  rules.fuses_loss = !training.release.newest() && training.release.has(kFusedLoss);
  rules.biased_experts_in_steps = !training.release.has(kBiasedMlp);
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

// It has 1F1B with and without interleaving (schedules.py).
bool offers(ScheduleKind schedule) {
  return schedule == default_schedule() || interleaves(schedule);
}

// Checks what arguments.py demands of its overlap switches.
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

constexpr MuonMode kMuonModes[] = {MuonMode::kDuplicated, MuonMode::kDistributed, MuonMode::kLayer,
                                   MuonMode::kBlockwise};

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
    .pairs_passes = true,          // --overlap-moe-expert-parallel-comm
    .hides_in_exchanges = true,    // --moe-shared-expert-overlap
    .defers_head = true,           // --defer-embedding-wgrad-compute
    .has_muon = true,              // --optimizer muon
    .most_zero_of_muon = 1,        // NVIDIA/Megatron-LM#4486 is open
    .muon_modes = kMuonModes,      // --muon-tp-mode
    .offload = {.parts = true},    // --optimizer-offload-fraction
    .has_fp4 = true,               // --fp4-format
    .has_fp8_head = true,          // fp8_output_proj
    .stores_fp8_inputs = true,     // --activation-func-fp8-input-store
    .fuses_experts = true,         // --use-transformer-engine-op-fuser
    .keeps_wide_layers = true,     // --first-last-layers-bf16
    .validates_after_step = true,  // sail-sg/zero-bubble-pipeline-parallelism
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
    .most_proposed_zero = 1,
};

}  // namespace stepcast
