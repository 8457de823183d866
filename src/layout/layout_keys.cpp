// SPDX-License-Identifier: Apache-2.0
// The keys of the object `layout`, one row each, in the order in which they are read and settled.
#include <algorithm>

#include "layout/balanced_layers.h"
#include "layout/choices.h"
#include "layout/context_ranks.h"
#include "layout/framework.h"
#include "layout/key_search.h"
#include "layout/key_types.h"
#include "layout/layout_values.h"
#include "layout/scenario.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

void settle_dp(Scenario& s, bool stated) {
  Layout& l = s.layout;
  // Each degree is at most 2^20, so the product of three fits.
  if (!stated) l.dp = std::max<std::int64_t>(1, s.cluster.gpus() / (l.tp * l.cp * l.pp));
}

// Ring, unless the framework has others alone.
void settle_cp_method(Scenario& s, bool stated) {
  const auto offered = traits_of(s.training.framework).context_methods;
  const bool has = std::ranges::find(offered, s.layout.cp_method) != offered.end();
  if (!stated && !offered.empty() && !has) s.layout.cp_method = offered.front();
  settle_context(s);
}

void settle_etp(Scenario& s, bool stated) {
  Layout& l = s.layout;
  if (!stated) l.etp = s.model.moe && (l.dp * l.cp) % l.ep == 0 ? l.tp : 1;
}

void settle_virtual_stages(Scenario& s, bool stated) {
  const Schedule& schedule = rules_of(s.layout.schedule);
  const bool two = schedule.from_file && s.layout.file_form.placement != Placement::kStraight;
  const std::int64_t chunks = two ? 2 : schedule.chunks;
  if (!stated && chunks > 0) s.layout.virtual_stages = chunks;
}

void settle_stage_layers(Scenario& s, bool) {
  if (s.layout.stage_layers == std::vector{kBalancedLayers}) {
    s.layout.stage_layers = balanced_layers(s);
  }
}
// One pass of a chunk for each stage is the usual group.
void settle_group(Scenario& s, bool) {
  if (s.layout.micro_batch_group == s.layout.pp) s.layout.micro_batch_group = 0;
}

void settle_zero(Scenario& s, bool stated) {
  if (stated) return;
  const FrameworkTraits& traits = traits_of(s.training.framework);
  const bool offered = s.training.release.has(traits.sharded_optimizer_since);
  const bool alone = traits.shards_among_several && s.layout.dp * s.layout.cp == 1;
  s.layout.zero = offered && !alone ? traits.zero : 0;
}

void settle_shard_group(Scenario& s, bool) {
  if (s.layout.shard_group == s.layout.dp * s.layout.cp) s.layout.shard_group = 0;
}

// Without tensor parallelism there is nothing to cut: the frameworks switch it off.
void settle_sequence_parallel(Scenario& s, bool stated) {
  const Release since = traits_of(s.training.framework).sequence_parallel_since;
  const bool usual = s.training.release.has(since);
  s.layout.sequence_parallel = s.layout.tp > 1 && (stated ? s.layout.sequence_parallel : usual);
}

template <bool Overlap::*member>
void settle_overlap(Scenario& s, bool stated) {
  if (stated) return;
  s.layout.overlap.*member = traits_of(s.training.framework).overlap(s.training, s.layout).*member;
}

bool offloads_optimizer(const Scenario& s) { return s.layout.offload.optimizer > 0; }
bool offloads_parameters(const Scenario& s) { return s.layout.offload.parameters > 0; }
bool cuts_sequences(const Scenario& s) { return s.layout.cp > 1; }
bool has_experts(const Scenario& s) { return s.model.moe.has_value(); }
bool pairs_exchanges(const Scenario& s) { return s.layout.overlap.ep; }
bool has_shared_experts(const Scenario& s) { return s.model.moe && s.model.moe->shared_ffn > 0; }
bool lists_layers(const Scenario& s) { return !s.layout.stage_layers.empty(); }
bool has_modules_on_a_pipeline(const Scenario& s) {
  return s.model.mtp_layers > 0 && s.layout.pp > 1;
}
bool has_pipeline(const Scenario& s) { return s.layout.pp > 1; }
bool has_group(const Scenario& s) { return s.layout.micro_batch_group > 0; }
bool deals_layers(const Scenario& s) { return s.layout.stage_layers.empty(); }

std::string default_schedule_name() { return name_of(default_schedule()); }

constexpr const char* kByFramework = "by framework";

constexpr Key kRows[] = {
    {.path = "layout.tp",
     .type = &kCount<&Layout::tp, 1, kMostInKey>,
     .fallback = "1",
     .help = "tensor parallel ranks",
     .flag = {"--tp", "N"},
     .search = &kSearchTp,
     .decides_the_run = true},
    {.path = "layout.cp",
     .type = &kCount<&Layout::cp, 1, kMostInKey>,
     .fallback = "1",
     .help = "context parallel ranks",
     .flag = {"--cp", "N"},
     .search = &kSearchCp,
     .decides_the_run = true},
    {.path = "layout.cp_method",
     .type = &kChoice<&Layout::cp_method, context_method_names>,
     .fallback = kByFramework,
     .help = "how attention sees all keys of a sequence that cp ranks share",
     .settle = settle_cp_method,
     .shown = cuts_sequences,
     .search = &kSearchCpMethod},
    {.path = "layout.ep",
     .type = &kCount<&Layout::ep, 1, kMostInKey>,
     .fallback = "1",
     .help = "expert parallel ranks",
     .shown = has_experts,
     .flag = {"--ep", "N"},
     .search = &kSearchEp,
     .decides_the_run = true},
    {.path = "layout.pp",
     .type = &kCount<&Layout::pp, 1, kMostInKey>,
     .fallback = "1",
     .help = "pipeline stages",
     .flag = {"--pp", "N"},
     .search = &kSearchPp,
     .decides_the_run = true},
    {.path = "layout.dp",
     .type = &kCount<&Layout::dp, 1, kMostInKey>,
     .fallback = "GPUs / (tp x cp x pp)",
     .help = "data parallel ranks",
     .settle = settle_dp,
     .flag = {"--dp", "N"},
     .made_of = {"layout.tp", "layout.pp", "layout.cp"},
     .decides_the_run = true},
    {.path = "layout.etp",
     .type = &kCount<&Layout::etp, 1, kMostInKey>,
     .fallback = "tp when ep divides dp x cp, else 1",
     .help = "tensor parallel ranks of the experts",
     .settle = settle_etp,
     .shown = has_experts,
     .search = &kSearchEtp,
     .decides_the_run = true},
    {.path = "layout.micro_batch",
     .type = &kCount<&Layout::micro_batch, 1, kMostInKey>,
     .fallback = "1",
     .help = "sequences per forward pass",
     .flag = {"--micro-batch", "N"},
     .search = &kSearchMicroBatch,
     .decides_the_run = true},
    {.path = "layout.schedule",
     .type = &kScheduleName,
     .fallback = default_schedule_name,
     .help = "order of passes (see: stepcast show schedules)",
     .flag = {"--schedule", "NAME", true},
     .search = &kSearchSchedule,
     .decides_the_run = true},
    {.path = "layout.virtual_stages",
     .type = &kCount<&Layout::virtual_stages, 1, kMostInKey>,
     .fallback = "1, or what the schedule fixes",
     .help = "chunks per pipeline stage",
     .settle = settle_virtual_stages,
     .flag = {"--vpp", "N"},
     .search = &kSearchVirtualStages,
     .decides_the_run = true},
    {.path = "layout.micro_batch_group",
     .type = &kCount<&Layout::micro_batch_group, 1, kMostInKey>,
     .fallback = "pp",
     .help = "micro-batches that visit a chunk of an interleaved stage before the next chunk",
     .settle = settle_group,
     .shown = has_group},
    {.path = "layout.zero",
     .type = &kCount<&Layout::zero, 0, 3>,
     .fallback = kByFramework,
     .help = "what data parallel ranks shard: 1 optimizer, 2 also gradients, 3 also parameters",
     .settle = settle_zero,
     .flag = {"--zero", "0..3"},
     .search = &kSearchZero,
     .decides_the_run = true},
    {.path = "layout.shard_group",
     .type = &kShardGroup,
     .fallback = "all",
     .help = "ranks that share one copy of the states",
     .settle = settle_shard_group,
     .search = &kSearchShardGroup,
     .decides_the_run = true},
    {.path = "layout.sequence_parallel",
     .type = &kTruth<&Layout::sequence_parallel>,
     .fallback = "true when tp > 1, since the framework has it",
     .help = "tensor parallel ranks share what is outside the products; off without them",
     .settle = settle_sequence_parallel,
     .search = &kSearchSequenceParallel},
    {.path = "layout.recompute",
     .type = &kRecompute,
     .fallback = "none",
     .help = "what backward computes again",
     .flag = {"--recompute", "MODE"},
     .search = &kSearchRecompute,
     .decides_the_run = true},
    {.path = "layout.order",
     .type = &kOrder,
     .fallback = kUsualOrder,
     .help = "ranks along the axes, fastest first",
     .search = &kSearchOrder},
    {.path = "layout.overlap.grad_reduce",
     .type = &kTruth<&Overlap::grad_reduce>,
     .fallback = kByFramework,
     .help = "gradients are reduced beside the backward",
     .settle = settle_overlap<&Overlap::grad_reduce>,
     .search = &kSearchOverlapGradReduce},
    {.path = "layout.overlap.param_gather",
     .type = &kTruth<&Overlap::param_gather>,
     .fallback = kByFramework,
     .help = "parameters are gathered beside the forward",
     .settle = settle_overlap<&Overlap::param_gather>,
     .search = &kSearchOverlapParamGather},
    {.path = "layout.overlap.tp",
     .type = &kTruth<&Overlap::tp>,
     .fallback = kByFramework,
     .help = "tensor parallel collectives run beside the products next to them",
     .settle = settle_overlap<&Overlap::tp>,
     .search = &kSearchOverlapTp},
    {.path = "layout.overlap.pp",
     .type = &kTruth<&Overlap::pp>,
     .fallback = kByFramework,
     .help = "transfers between stages run beside other micro-batches",
     .settle = settle_overlap<&Overlap::pp>,
     .search = &kSearchOverlapPp},
    {.path = "layout.overlap.ep",
     .type = &kTruth<&Overlap::ep>,
     .fallback = "false",
     .help = "exchanges of tokens between experts run beside another micro-batch",
     .shown = has_experts},
    {.path = "layout.overlap.expert_wgrad",
     .type = &kTruth<&Overlap::expert_wgrad>,
     .fallback = "false",
     .help = "with overlap.ep: weight gradients of experts run beside the way back of their tokens",
     .shown = pairs_exchanges},
    {.path = "layout.overlap.shared_experts",
     .type = &kTruth<&Overlap::shared_experts>,
     .fallback = "false",
     .help = "shared experts run beside the exchanges of tokens",
     .shown = has_shared_experts},
    {.path = "layout.overlap.offload",
     .type = &kTruth<&Overlap::offload>,
     .fallback = "false",
     .help = "copies of gradients and parameters run beside the host's update",
     .shown = offloads_optimizer},
    {.path = "layout.offload.optimizer",
     .type = &kFraction<&Offload::optimizer>,
     .fallback = "0",
     .help = "fraction of the optimizer's states in host memory, where they are updated"},
    {.path = "layout.offload.parameters",
     .type = &kFraction<&Offload::parameters>,
     .fallback = "0",
     .help = "fraction of the parameters in host memory"},
    {.path = "layout.offload.activations",
     .type = &kFraction<&Offload::activations>,
     .fallback = "0",
     .help = "fraction of the activations in host memory"},
    {.path = "layout.offload.optimizer_device",
     .type = &kChoice<&Offload::optimizer_device, offload_device_names>,
     .fallback = "cpu",
     .help = "host memory, or the node's disks (the cluster's disk_read and disk_write)",
     .shown = offloads_optimizer},
    {.path = "layout.offload.parameter_device",
     .type = &kChoice<&Offload::parameter_device, offload_device_names>,
     .fallback = "cpu",
     .help = "host memory, or the node's disks",
     .shown = offloads_parameters},
    {.path = "layout.stage_layers",
     .type = &kStageLayers,
     .fallback = "",
     .help = "layers per chunk, pp x virtual_stages entries in model order; `balanced`: so that "
             "stages compute equally long, the one with the head too",
     .settle = settle_stage_layers,
     .shown = lists_layers},
    {.path = "layout.account_for_embedding",
     .type = &kTruth<&Layout::account_for_embedding>,
     .fallback = "false",
     .help = "the embedding takes one layer's place when layers are dealt",
     .shown = deals_layers},
    {.path = "layout.account_for_loss",
     .type = &kTruth<&Layout::account_for_loss>,
     .fallback = "false",
     .help = "the loss takes one layer's place when layers are dealt",
     .shown = deals_layers},
    {.path = "layout.mtp_apart",
     .type = &kTruth<&Layout::mtp_apart>,
     .fallback = "false",
     .help = "modules of multi-token prediction stand in the chunk before the head's",
     .shown = has_modules_on_a_pipeline},
    {.path = "layout.defer_head_wgrad",
     .type = &kDeferredHead,
     .fallback = "0",
     .help = "micro-batches whose weight gradient of the head waits for the end of the pipeline",
     .shown = has_pipeline},
};

}  // namespace

std::span<const Key> layout_keys() { return kRows; }

}  // namespace stepcast
