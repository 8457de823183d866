// SPDX-License-Identifier: Apache-2.0
// DeepSpeed, with the model code of Megatron-DeepSpeed. Sources: microsoft/DeepSpeed,
// deepspeed/runtime/zero/config.py and deepspeed/runtime/pipe.
#include <fmt/format.h>

#include "layout/framework.h"
#include "layout/framework_rules.h"
#include "layout/frameworks/shared_rules.h"
#include "layout/scenario.h"

namespace stepcast {
namespace {

constexpr std::int64_t kBucketElements = 500'000'000;  // zero/config.py, both directions
// zero/config.py: stage3_max_live_parameters and stage3_max_reuse_distance, both.
constexpr std::int64_t kMostLiveElements = 1'000'000'000;

// stage_1_and_2.py took the place of stage1.py, which scattered its sums (DeepSpeed 0.5.9).
constexpr Release kWholeSums = Release::of(2022, 1);

// Before pull request 1453, partition_parameters.py (_allgather_params) filled parameters piece by
// piece from the list that PyTorch had filled, and stage3.py waited (_synchronize_communication).
constexpr Release kFlatGathers = Release::of(2022, 1);

// overlap_comm: stage == 3
Overlap overlap(const Training&, const Layout& layout) {
  return {.grad_reduce = layout.zero == 3, .param_gather = layout.zero == 3};
}

// runtime/zero/muon/original_muon.py. Zero 1 and 2 (stage_1_and_2.py, get_flat_partition) hand the
// whole gradient of a matrix to each rank whose partition has a part of it (pull request 8141), and
// zero 3 (stage3.py, _apply_muon_to_accumulated_grads) sums whole buckets, because it refuses
// reduce_scatter; it then gathers what it had shared out.
void add_muon(const Layout& layout, FrameworkRules& rules) {
  rules.muon_deal = layout.zero == 3 ? MuonDeal::kTurns : MuonDeal::kTouched;
  rules.muon_on_gram = true;  // ns_method "gram"
  rules.muon_keeps_packed = true;
  rules.sums_whole_gradients = layout.zero >= 1;
}

FrameworkRules rules(const Training& training, const Layout& layout) {
  FrameworkRules rules = half_precision_rules(training);
  rules.records_streams = records_streams(training);
  rules.bucket_elements = kBucketElements;
  rules.gather_bucket_elements = kBucketElements;
  rules.cuts_full_buckets = true;  // flat gradients are cut wherever a bucket is full
  // bf16_optimizer.py: bf16 with gradients in fp32. Its shards are those of zero 1.
  rules.keeps_half_gradients = layout.zero <= 1 && training.precision == DataType::kBf16 &&
                               training.grad_precision == DataType::kFp32;
  // stage_1_and_2.py: contiguous_gradients is off in zero 1, so reduce_ipg_grads calls
  // buffered_reduce_fallback, which sums whole buckets.
  const bool whole = rules.keeps_half_gradients || training.release.has(kWholeSums);
  rules.sums_whole_gradients = layout.zero == 1 && whole;
  if (training.optimizer == Optimizer::kMuon) add_muon(layout, rules);
  // stage_1_and_2.py, step(): flatten(averaged_gradients).to(fp32); fused_optimizer.py does it too.
  rules.copies_flat_gradients = layout.zero <= 2 && !rules.keeps_half_gradients;
  rules.gathers_by_matrix = true;
  rules.gathers_into_lists = layout.zero == 3 && !training.release.has(kFlatGathers);
  rules.most_live_elements = kMostLiveElements;
  rules.sums_on_host = true;  // stage_1_and_2.py and stage3.py: the partition is a pinned tensor
  rules.host_threads = 0;     // csrc/adam/cpu_adam.cpp: OpenMP over all cores it may use
  // runtime/utils.py: PartitionedTensor.from_meta reads a message on the host.
  rules.host_sync_after_p2p = true;
  // Megatron's tensor_parallel/data.py: broadcast_data reads the sizes of each batch off the GPU.
  rules.host_sync_at_batch = true;
  // PipelineEngine partitions activations and gradients whenever it is model parallel.
  rules.scatter_gather_p2p = scatters_p2p(layout);
  add_megatron_model(rules);
  return rules;
}

// runtime/pipe/schedule.py: TrainSchedule alone, and nothing overlaps its transfers.
bool offers(ScheduleKind schedule) { return schedule == default_schedule(); }
bool offers_no_overlap(ScheduleKind) { return false; }

void check_zero(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (l.zero < 2) return;
  // runtime/engine.py: "MoE not supported with Stage 3".
  if (l.zero == 3 && l.ep > 1 && findings.trusts({"layout.ep"})) {
    findings.illegal("layout.ep",
                     fmt::format("{} with zero 3: DeepSpeed's stage 3 takes no experts on other "
                                 "ranks",
                                 l.ep),
                     "ep 1, or zero 2 or less");
  }
  if (l.pp > 1) {
    findings.illegal("layout.zero",
                     fmt::format("{} with pp = {}: each micro-batch would reduce gradients that "
                                 "the pipeline still accumulates",
                                 l.zero, l.pp),
                     "DeepSpeed's pipeline takes zero 0 or 1");
  }
  if (s.training.no_sync) {
    findings.illegal("training.no_sync",
                     fmt::format("DeepSpeed's zero {} partitions gradients as they come", l.zero),
                     "leave it out, or zero 0 or 1");
  }
}

constexpr std::string_view kDeepSpeedTrainers[] = {"megatrondeepspeed", "zero"};

// deepspeed/sequence/layer.py: DistributedAttention (Ulysses).
constexpr ContextMethod kContextMethods[] = {ContextMethod::kAllToAll};

// The update sees a tensor rank's part of a matrix, and takes it for the matrix.
constexpr MuonMode kMuonModes[] = {MuonMode::kBlockwise};

}  // namespace

extern const FrameworkTraits kDeepSpeed = {
    .name = "deepspeed",
    .trainers = kDeepSpeedTrainers,
    .zero = 1,
    .compile = true,          // Megatron-DeepSpeed's model code carries Megatron's fused kernels
    .gradients_fp32 = false,  // communication_data_type defaults to the training type
    .overlap = overlap,
    .rules = rules,
    .offers = offers,
    .offers_pipeline_overlap = offers_no_overlap,
    .context_methods = kContextMethods,
    .has_muon = true,
    .muon_modes = kMuonModes,
    .offload = {.sharded_parts = true, .parameters = true, .disks = true},
    .attention_kernel = flash_attention_package,
    .check_zero = check_zero,
    // deepspeed/runtime/tensor_parallel (autotp) takes zero 0 to 2, and its reductions run alone.
    .most_proposed_zero_with_tensor = 2,
    .proposes_tensor_overlap = false,
    // Trainers on it recompute all layers or none (gradient_checkpointing).
    .proposes_recomputed_layers = false,
};

}  // namespace stepcast
