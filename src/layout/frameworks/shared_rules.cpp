// SPDX-License-Identifier: Apache-2.0
#include "layout/frameworks/shared_rules.h"

#include "core/data_type.h"
#include "layout/framework_rules.h"
#include "layout/layout.h"
#include "layout/pipeline.h"
#include "layout/training.h"
#include "schedule/schedule.h"

namespace stepcast {

FrameworkRules half_precision_rules(const Training& training) {
  FrameworkRules rules;
  rules.bf16_parameters = training.wide() != DataType::kFp32;
  rules.keeps_master_weights = rules.bf16_parameters;
  return rules;
}

bool scatters_p2p(const Layout& layout) { return layout.tp > 1 && !layout.sequence_parallel; }

bool posts_transfers_ahead(const Layout& layout) {
  const Schedule& schedule = rules_of(layout.schedule);
  return splits_backward(layout) || schedule.chunks != 1 ||
         (schedule.from_file && layout.virtual_stages > 1);
}

const char* flash_attention_package(Release release, GpuArchitecture architecture) {
  if (!traits_of(architecture).has_flash_attention) return "cudnn";
  return release.has(Release::of(2023, 7)) ? "fa2" : "fa1";
}

// ProcessGroupNCCL called recordStream on what a collective reads, unless
// TORCH_NCCL_AVOID_RECORD_STREAMS was set, which PyTorch 2.8 made the default (pytorch/pytorch pull
// request 76861; Lightning-AI/lightning-thunder issue 2405). "Unexpectedly high memory usage" of
// tensor parallelism was its fruit (pytorch/torchtitan pull request 737).
bool records_streams(const Training& training) {
  return !training.release.has(Release::of(2025, 8));
}

std::int64_t ddp_bucket_elements(const Training& training) {
  constexpr std::int64_t kBucketBytes = 25 << 20;  // kDefaultBucketBytesCap, reducer.hpp
  return kBucketBytes / size_of(training.grad_precision);
}

void add_megatron_model(FrameworkRules& rules) {
  rules.vocab_multiple = 128;  // --make-vocab-size-divisible-by
  // arguments.py: --hidden-dropout and --attention-dropout are 0.1; the Llama form switches them
  // off.
  rules.drops_out_in_gpt = true;
  // core/tensor_parallel/cross_entropy.py: cast, maximum, subtract, exponential, sum, divide.
  rules.loss_in_single_steps = true;
  // core/fusions/fused_softmax.py: is_kernel_available.
  rules.longest_fused_softmax = 16384;
}

}  // namespace stepcast
