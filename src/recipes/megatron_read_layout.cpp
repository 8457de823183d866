// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "layout/choices.h"
#include "layout/pipeline.h"
#include "recipes/megatron.h"
#include "recipes/megatron_read.h"
#include "recipes/megatron_text.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMostChunks = 1 << 20;

std::string list_text(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

void set_chunks(ImportedScenario& out, std::vector<std::int64_t> layers,
                std::int64_t virtual_stages, const char* origin) {
  Layout automatic;
  automatic.pp = out.degree("layout.pp");
  automatic.virtual_stages = virtual_stages;
  std::int64_t sum = 0;
  for (const std::int64_t count : layers) sum += count;
  const std::int64_t chunks = automatic.pp * virtual_stages;
  // Layers that stepcast deals the same way by itself need no list.
  if (sum >= chunks && sum % chunks != 0 && deal_layers(sum, automatic) == layers) return;
  out.set_json("layout.stage_layers", list_text(layers), origin);
}

// --pipeline-model-parallel-layout; how many chunks each stage has.
std::int64_t read_layout_string(FlagList& flags, std::int64_t pp) {
  const char* flag = "--pipeline-model-parallel-layout";
  ImportedScenario& out = flags.imported();
  const auto text = flags.text(flag);
  if (!text) return 0;
  const auto layout = read_layout_text(*text);
  if (!layout || static_cast<std::int64_t>(layout->layers.size()) % pp != 0) {
    out.fail(ErrorCode::kBadValue, flag, fmt::format("'{}' is not read", *text),
             fmt::format("stages of E, t, m and L, a multiple of {} of them", pp));
    return 0;
  }
  const auto chunks = static_cast<std::int64_t>(layout->layers.size());
  const std::int64_t behind = chunks - 1 - layout->last_mtp;
  if (layout->mtp > 0 && behind > 1) {
    out.fail(ErrorCode::kNotSupported, flag,
             "prediction layers (m) more than a stage before the loss are not supported yet",
             "m in the last stage or the one before it");
  } else if (layout->mtp > 0 && behind == 1) {
    out.set_flag("layout.mtp_apart", true, flag);
  }
  const std::int64_t stages = chunks / pp;
  set_chunks(out, layout->layers, stages, flag);
  return stages;
}

// --decoder-first-pipeline-num-layers and -last-: the stages between share what is left.
void read_uneven_ends(FlagList& flags, std::int64_t pp, std::int64_t stages) {
  ImportedScenario& out = flags.imported();
  const auto first = flags.integer("--decoder-first-pipeline-num-layers", 0);
  const auto last = flags.integer("--decoder-last-pipeline-num-layers", 0);
  const auto layers = out.integer("model.layers");
  if ((!first && !last) || !layers) return;
  const char* flag =
      first ? "--decoder-first-pipeline-num-layers" : "--decoder-last-pipeline-num-layers";
  const std::int64_t inner = pp - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t left = *layers - first.value_or(0) - last.value_or(0);
  const std::int64_t each = inner > 0 ? left / inner : 0;
  const bool whole = left >= 0 && (inner > 0 ? left % (inner * stages) == 0 : left == 0) &&
                     first.value_or(0) % stages == 0 && last.value_or(0) % stages == 0;
  if (!whole) {
    out.fail(ErrorCode::kIllegal, flag,
             fmt::format("{} layers do not divide over the {} other stages of {} chunks", left,
                         inner, stages),
             "whole layers for every chunk");
    return;
  }
  std::vector<std::int64_t> chunks;
  for (std::int64_t chunk = 0; chunk < pp * stages; ++chunk) {
    const std::int64_t stage = chunk % pp;
    const bool is_first = stage == 0 && first, is_last = stage + 1 == pp && last;
    chunks.push_back((is_first ? *first : is_last ? *last : each) / stages);
  }
  set_chunks(out, chunks, stages, flag);
}

// Chunks by --num-layers-per-virtual-pipeline-stage.
std::int64_t stages_by_length(FlagList& flags, std::int64_t pp, std::int64_t places) {
  const char* flag = "--num-layers-per-virtual-pipeline-stage";
  const auto length = flags.integer(flag);
  if (!length || places == 0) return 0;
  if (places % (pp * *length) == 0) return places / (pp * *length);
  flags.imported().fail(
      ErrorCode::kIllegal, flag,
      fmt::format("{} layers do not divide into {} stages of chunks of {}", places, pp, *length),
      "a divisor of the layers of a stage");
  return 0;
}

void read_pipeline(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const std::int64_t pp = out.degree("layout.pp");
  std::int64_t places = out.integer("model.layers").value_or(0);
  for (const auto& [flag, path] :
       {std::pair("--account-for-embedding-in-pipeline-split", "layout.account_for_embedding"),
        std::pair("--account-for-loss-in-pipeline-split", "layout.account_for_loss")}) {
    if (!flags.given(flag)) continue;
    out.set_flag(path, true, flag);
    places += places > 0 ? 1 : 0;
  }
  const auto limit = flags.integer("--wgrad-deferral-limit", 0);
  if (constexpr const char* kDefer = "--defer-embedding-wgrad-compute"; flags.given(kDefer)) {
    constexpr const char* kKey = "layout.defer_head_wgrad";
    if (limit.value_or(0) > 0) {
      out.set_integer(kKey, *limit, "--wgrad-deferral-limit");
    } else {
      out.set_word(kKey, "all", kDefer);
    }
  }
  const int ways = (flags.has("--num-layers-per-virtual-pipeline-stage") ? 1 : 0) +
                   (flags.has("--num-virtual-stages-per-pipeline-rank") ? 1 : 0) +
                   (flags.has("--pipeline-model-parallel-layout") ? 1 : 0);
  if (ways > 1) {
    out.fail(ErrorCode::kIllegal, "--num-layers-per-virtual-pipeline-stage",
             "Megatron takes one of three ways to say how many chunks a stage has",
             "this flag, --num-virtual-stages-per-pipeline-rank or "
             "--pipeline-model-parallel-layout");
  }
  std::int64_t stages = read_layout_string(flags, pp);
  const auto stated = flags.integer("--num-virtual-stages-per-pipeline-rank");
  if (stages == 0) stages = stated.value_or(stages_by_length(flags, pp, places));
  stages = std::max<std::int64_t>(stages, 1);
  if (pp * stages > kMostChunks) {
    out.fail(ErrorCode::kBadValue, "--num-virtual-stages-per-pipeline-rank",
             fmt::format("{} chunks are too many", pp * stages),
             fmt::format("at most {} in all", kMostChunks));
    return;
  }
  read_uneven_ends(flags, pp, stages);
  const bool uneven =
      out.find("layout.stage_layers") || flags.has("--pipeline-model-parallel-layout");
  if (!uneven && places > 0 && places % (pp * stages) != 0) {
    out.fail(ErrorCode::kIllegal, "--num-layers",
             fmt::format("{} layers do not divide into {} chunks", places, pp * stages),
             "Megatron then demands --pipeline-model-parallel-layout");
  }
  if (stages > 1) {
    out.set_word("layout.schedule", "interleaved", "--num-layers-per-virtual-pipeline-stage");
    out.set_integer("layout.virtual_stages", stages, "--num-layers-per-virtual-pipeline-stage");
  }
  constexpr const char* kGroup = "--microbatch-group-size-per-virtual-pipeline-stage";
  const auto group = flags.integer(kGroup);
  if (group && *group > 0 && stages > 1)
    out.set_integer("layout.micro_batch_group", *group, kGroup);
  if (flags.given("--no-overlap-p2p-communication") && stages > 1) {
    out.set_flag("layout.overlap.pp", false, "--no-overlap-p2p-communication");
  }
}

void read_sharding(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool optimizer = flags.given("--use-distributed-optimizer");
  out.set_integer("layout.zero", optimizer ? 1 : 0, "--use-distributed-optimizer");
  const bool fsdp = flags.given("--use-megatron-fsdp") || flags.given("--use-custom-fsdp");
  const auto strategy = flags.choice("--data-parallel-sharding-strategy",
                                     {"no_shard", "optim", "optim_grads", "optim_grads_params"});
  if (fsdp) {
    const std::string what = strategy.value_or("no_shard");
    const int zero = what == "no_shard" ? 0 : what == "optim" ? 1 : what == "optim_grads" ? 2 : 3;
    out.set_integer("layout.zero", zero, "--data-parallel-sharding-strategy");
  }
  if (flags.given("--use-torch-fsdp2")) {
    const bool keeps = flags.given("--torch-fsdp2-no-reshard-after-forward");
    out.set_word("training.framework", "fsdp", "--use-torch-fsdp2");
    out.set_integer("layout.zero", keeps ? 2 : 3, "--use-torch-fsdp2");
  }
  const auto instances = flags.integer("--num-distributed-optimizer-instances");
  if (instances.value_or(1) > 1) {
    const std::int64_t model_parallel = out.degree("layout.tp") * out.degree("layout.pp");
    if (!out.gpus) {
      out.fail(ErrorCode::kMissingKey, "--num-distributed-optimizer-instances",
               "needs the number of GPUs, which the file does not say", "--cluster NAMExNODES");
      return;
    }
    out.set_integer("layout.shard_group",
                    std::max<std::int64_t>(1, *out.gpus / model_parallel / *instances),
                    "--num-distributed-optimizer-instances");
  }
}

void read_context(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const std::vector<std::string> types = flags.values("--cp-comm-type");
  const auto sizes = flags.values("--hierarchical-context-parallel-sizes");
  if (types.empty()) return;
  const char* flag = "--cp-comm-type";
  const auto known = std::ranges::find(kMegatronContext, types.front());
  if (known == kMegatronContext.end()) {
    out.fail(ErrorCode::kBadValue, flag, fmt::format("'{}' is no way to attend", types.front()),
             "p2p, allgather, a2a or a2a+p2p");
    return;
  }
  if (std::ranges::any_of(types, [&](const auto& type) { return type != types.front(); })) {
    out.warnings.push_back(
        fmt::format("--cp-comm-type differs between layers: stepcast takes {} in all", types[0]));
  }
  const auto method = static_cast<ContextMethod>(known - kMegatronContext.begin());
  out.set_word("layout.cp_method", name_of(method), flag);
  if (method == ContextMethod::kHierarchical && sizes.size() != 2) {
    out.fail(ErrorCode::kMissingKey, "--hierarchical-context-parallel-sizes",
             "is required with --cp-comm-type a2a+p2p", "two sizes");
  }
}

void read_overlap(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool reduce = flags.given("--overlap-grad-reduce");
  const bool gather = flags.given("--overlap-param-gather");
  if (reduce) out.set_flag("layout.overlap.grad_reduce", true, "--overlap-grad-reduce");
  if (gather) out.set_flag("layout.overlap.param_gather", true, "--overlap-param-gather");
  if (flags.given("--overlap-moe-expert-parallel-comm")) {
    out.set_flag("layout.overlap.ep", true, "--overlap-moe-expert-parallel-comm");
  }
  if (flags.given("--delay-wgrad-compute")) {
    out.set_flag("layout.overlap.expert_wgrad", true, "--delay-wgrad-compute");
  }
  if (flags.given("--moe-shared-expert-overlap")) {
    out.set_flag("layout.overlap.shared_experts", true, "--moe-shared-expert-overlap");
  }
  if (flags.given("--tp-comm-overlap")) {
    out.set_flag("layout.overlap.tp", true, "--tp-comm-overlap");
  }
  if (const auto bucket = flags.integer("--ddp-bucket-size")) {
    if (reduce) out.set_integer("training.bucket_elements", *bucket, "--ddp-bucket-size");
    if (gather) out.set_integer("training.gather_bucket_elements", *bucket, "--ddp-bucket-size");
    if (!reduce) out.warnings.push_back("--ddp-bucket-size has no effect without overlap");
  }
}

std::string module_list(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  std::vector<std::string> modules;
  const auto& known = megatron_modules();
  for (const std::string& name : flags.values("--recompute-modules")) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& module) { return name == module.megatron; });
    if (found != known.end()) {
      modules.push_back(fmt::format("\"{}\"", name_of(found->stepcast)));
      continue;
    }
    std::vector<std::string> names;
    for (const auto& module : known) names.emplace_back(module.megatron);
    out.fail(ErrorCode::kBadValue, "--recompute-modules", fmt::format("'{}' is no module", name),
             "some of " + one_of(names));
  }
  if (modules.empty()) modules.emplace_back("\"core_attention\"");
  return fmt::format("[{}]", fmt::join(modules, ","));
}

void read_recompute(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const char* flag = "--recompute-granularity";
  auto granularity = flags.choice(flag, {"full", "selective"});
  if (flags.given("--recompute-activations")) granularity = "selective";
  const auto method = flags.choice("--recompute-method", {"uniform", "block"});
  const std::int64_t layers = flags.integer("--recompute-num-layers", 0).value_or(1);
  const std::string modules = module_list(flags);
  if (!granularity) return;
  if (*granularity == "selective") {
    if (method) {
      out.fail(ErrorCode::kIllegal, "--recompute-method", "does not go with selective",
               "leave it out, or --recompute-granularity full");
    }
    out.set_json("layout.recompute", "{\"mode\":\"selective\",\"modules\":" + modules + "}", flag);
    return;
  }
  if (!method) {
    out.fail(ErrorCode::kMissingKey, "--recompute-method",
             "is required with --recompute-granularity full", "uniform or block");
    return;
  }
  if (*method == "block" && layers == 0) return;
  const std::string first = *method == "block" ? fmt::format(",\"layers\":{}", layers) : "";
  out.set_json("layout.recompute", "{\"mode\":\"full\"" + first + "}", flag);
  if (*method == "uniform" && layers > 1) {
    out.warnings.push_back(fmt::format(
        "--recompute-num-layers {}: stepcast keeps the input of every layer, not of each {}th, "
        "and forecasts more memory",
        layers, layers));
  }
}

void read_experts(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const auto ep = flags.integer("--expert-model-parallel-size");
  const auto etp = flags.integer("--expert-tensor-parallel-size");
  const bool experts = out.find("model.moe.experts") != nullptr;
  if (ep.value_or(1) > 1 || (ep && experts)) {
    out.set_integer("layout.ep", *ep, "--expert-model-parallel-size");
  }
  if (experts) {
    out.set_integer("layout.etp", etp.value_or(out.integer("layout.tp").value_or(1)),
                    "--expert-tensor-parallel-size");
  }
}

}  // namespace

void read_megatron_layout(FlagList& flags) {
  ImportedScenario& out = flags.imported();
  const bool sequence = flags.given("--sequence-parallel");
  const bool tensor = out.integer("layout.tp").value_or(1) > 1;
  out.set_flag("layout.sequence_parallel", sequence, "--sequence-parallel");
  if (sequence && !tensor) {
    out.warnings.push_back("--sequence-parallel needs tensor parallelism: Megatron turns it off");
  }
  if (flags.given("--use-tp-pp-dp-mapping")) {
    out.set_word("layout.order", "tp-cp-ep-pp-dp", "--use-tp-pp-dp-mapping");
  }
  read_pipeline(flags);
  read_sharding(flags);
  read_context(flags);
  read_overlap(flags);
  read_recompute(flags);
  read_experts(flags);
  if (flags.given("--no-scatter-gather-tensors-in-pipeline")) {
    out.set_flag("training.scatter_gather_p2p", false, "--no-scatter-gather-tensors-in-pipeline");
  }
  const bool offload = flags.given("--optimizer-cpu-offload");
  const auto fraction = flags.number("--optimizer-offload-fraction");
  const bool aware = flags.given("--use-precision-aware-optimizer");
  if (offload && !aware) {
    out.fail(ErrorCode::kIllegal, "--optimizer-cpu-offload",
             "needs --use-precision-aware-optimizer", "give both");
  }
  if (offload) {
    out.set_number("layout.offload.optimizer", fraction.value_or(1.0), "--optimizer-cpu-offload");
    if (flags.given("--overlap-cpu-optimizer-d2h-h2d")) {
      out.set_flag("layout.overlap.offload", true, "--overlap-cpu-optimizer-d2h-h2d");
    }
  }
  const auto offloaded = flags.integer("--cpu-offloading-num-layers", 0);
  const auto layers = out.integer("model.layers");
  if (offloaded.value_or(0) > 0 && layers.value_or(0) > 0) {
    out.set_number("layout.offload.activations",
                   static_cast<double>(*offloaded) / static_cast<double>(*layers),
                   "--cpu-offloading-num-layers");
  }
}

}  // namespace stepcast
