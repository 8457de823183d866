// SPDX-License-Identifier: Apache-2.0
// Sources. Megatron: NVIDIA/Megatron-LM, megatron/training/arguments.py,
// megatron/core/model_parallel_config.py and megatron/core/distributed. FSDP: pytorch/pytorch,
// torch/distributed/fsdp, with pytorch/torchtitan's and llm-foundry's settings. DeepSpeed:
// microsoft/DeepSpeed, deepspeed/runtime/zero/config.py and deepspeed/runtime/pipe.
#include "layout/framework.h"

#include <algorithm>

namespace stepcast {
namespace {

constexpr std::int64_t kDeepSpeedBucketElements = 500'000'000;  // zero/config.py, both directions
constexpr std::int64_t kDdpBucketBytes = 25 << 20;    // kDefaultBucketBytesCap, reducer.hpp
constexpr std::int64_t kMegatronVocabMultiple = 128;  // --make-vocab-size-divisible-by

// Megatron's distributed_data_parallel.py: larger data groups need larger buckets to stay bound by
// bandwidth instead of latency.
std::int64_t megatron_bucket_elements(const Layout& layout) {
  return std::max<std::int64_t>(40'000'000, 1'000'000 * layout.dp * layout.cp);
}

// The activation between stages is equal on all tensor ranks unless sequence parallelism has cut
// it, so each sends 1/tp and the receivers gather (arXiv 2104.04473, section 4.1; DeepSpeed's
// PipelineEngine partitions activations and gradients whenever it is model parallel).
bool scatters_p2p(const Layout& layout) { return layout.tp > 1 && !layout.sequence_parallel; }

FrameworkRules megatron_rules(const Layout& layout) {
  FrameworkRules rules;
  const std::int64_t bucket = megatron_bucket_elements(layout);
  rules.bucket_elements = layout.overlap.grad_reduce ? bucket : 0;
  rules.gather_bucket_elements = layout.overlap.param_gather ? bucket : 0;
  rules.vocab_multiple = kMegatronVocabMultiple;
  // batch_p2p_sync: a device synchronise after each batched send/receive; overlapped ones (the
  // interleaved schedule's) are not batched.
  rules.host_sync_after_p2p = !layout.overlap.pp;
  rules.fused_gradient_accumulation = true;  // --no-gradient-accumulation-fusion switches it off
  rules.scatter_gather_p2p = scatters_p2p(layout);
  return rules;
}

FrameworkRules deepspeed_rules(const Layout& layout) {
  FrameworkRules rules;
  rules.bucket_elements = kDeepSpeedBucketElements;
  rules.gather_bucket_elements = kDeepSpeedBucketElements;
  rules.vocab_multiple = kMegatronVocabMultiple;  // Megatron-DeepSpeed pads as Megatron
  rules.host_sync_after_p2p =
      true;  // runtime/utils.py: PartitionedTensor.from_meta reads a message
  // Megatron's tensor_parallel/data.py: broadcast_data reads the sizes of each batch off the GPU.
  rules.host_sync_at_batch = true;
  rules.scatter_gather_p2p = scatters_p2p(layout);
  return rules;
}

FrameworkRules native_rules(const Training& training, const Layout& layout) {
  FrameworkRules rules;
  if (layout.overlap.grad_reduce) {
    rules.bucket_elements = kDdpBucketBytes / size_of(training.grad_precision);
  }
  return rules;
}

}  // namespace

FrameworkDefaults defaults_of(Framework framework) {
  switch (framework) {
    case Framework::kMegatron:
      // Fused bias-GELU, bias-dropout-add and rotary kernels are on by default;
      // --accumulate-allreduce-grads-in-fp32 is implied by --bf16.
      return {.zero = 1, .compile = true, .gradients_fp32 = true};
    case Framework::kFsdp:
      // Parameters and gradients are fp32 shards. torch.compile is opt-in in PyTorch, torchtitan
      // (compile.enable) and llm-foundry (compile_config).
      return {.zero = 3, .compile = false, .gradients_fp32 = true};
    case Framework::kDeepSpeed:
      // Megatron-DeepSpeed's model code carries Megatron's fused kernels; communication_data_type
      // defaults to the training type.
      return {.zero = 1, .compile = true, .gradients_fp32 = false};
    case Framework::kNative:
      return {.zero = 0, .compile = true, .gradients_fp32 = false};
  }
  return {};
}

Overlap default_overlap(Framework framework, int zero, ScheduleKind schedule) {
  switch (framework) {
    case Framework::kMegatron:
      // --overlap-grad-reduce, --overlap-param-gather and --tp-comm-overlap are off unless given;
      // overlap_p2p_comm is on, and forced off outside the interleaved schedule.
      return {.pp = schedule == ScheduleKind::kInterleaved};
    case Framework::kFsdp:
      return {.grad_reduce = true, .param_gather = true};
    case Framework::kDeepSpeed:
      return {.grad_reduce = zero == 3, .param_gather = zero == 3};  // overlap_comm: stage == 3
    case Framework::kNative:
      return {.grad_reduce = true};  // DDP reduces a bucket when it is full
  }
  return {};
}

FrameworkRules rules_of(const Training& training, const Layout& layout) {
  FrameworkRules rules;
  switch (training.framework) {
    case Framework::kMegatron:
      rules = megatron_rules(layout);
      break;
    case Framework::kFsdp:
      break;  // the unit is a block, one gather ahead: the struct's defaults
    case Framework::kDeepSpeed:
      rules = deepspeed_rules(layout);
      break;
    case Framework::kNative:
      rules = native_rules(training, layout);
      break;
  }
  const bool fp32 = training.precision == DataType::kFp32;
  rules.bf16_parameters = !fp32 && training.framework != Framework::kFsdp;
  rules.keeps_master_weights = rules.bf16_parameters;
  return rules;
}

// Megatron: megatron/core/pipeline_parallel/schedules.py, with and without interleaving. DeepSpeed:
// runtime/pipe/schedule.py, TrainSchedule.
bool offers(Framework framework, ScheduleKind schedule) {
  switch (framework) {
    case Framework::kMegatron:
      return schedule == ScheduleKind::k1F1B || schedule == ScheduleKind::kInterleaved;
    case Framework::kDeepSpeed:
      return schedule == ScheduleKind::k1F1B;
    case Framework::kFsdp:
    case Framework::kNative:
      return true;
  }
  return true;
}

// Megatron forces overlap_p2p_comm off without interleaving; DeepSpeed's pipeline has none.
bool offers_pipeline_overlap(Framework framework, ScheduleKind schedule) {
  if (framework == Framework::kMegatron) return schedule == ScheduleKind::kInterleaved;
  return framework != Framework::kDeepSpeed;
}

}  // namespace stepcast
