// SPDX-License-Identifier: Apache-2.0
#include "layout/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cluster/accelerator.h"
#include "layout/choices.h"
#include "layout/fp8_recipe.h"
#include "layout/framework.h"
#include "layout/keys.h"
#include "layout/nearest.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

// The degree to blame for a product that does not divide the GPUs: one that does not by itself,
// else the largest.
std::string path_of_worst_degree(const Layout& l, std::int64_t gpus) {
  const std::pair<const char*, std::int64_t> degrees[] = {
      {"layout.tp", l.tp}, {"layout.pp", l.pp}, {"layout.cp", l.cp}};
  for (const auto& [path, degree] : degrees) {
    if (gpus % degree != 0) return path;
  }
  return std::ranges::max_element(degrees, {}, [](const auto& d) { return d.second; })->first;
}

// tp * cp * pp * dp = GPUs.
void check_degrees(const Scenario& s, const Stated& stated, Findings& findings) {
  if (!findings.trusts({"cluster", "layout.tp", "layout.cp", "layout.pp", "layout.dp"})) return;
  const Layout& l = s.layout;
  const std::int64_t gpus = s.cluster.gpus();
  const auto counted_gpus = [&] { return fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s"); };
  const std::int64_t model_parallel = l.tp * l.cp * l.pp;
  if (model_parallel > gpus || gpus % model_parallel != 0) {
    findings.illegal(
        path_of_worst_degree(l, gpus),
        fmt::format("tp*cp*pp = {}*{}*{} = {} does not divide the {} of the cluster", l.tp, l.cp,
                    l.pp, model_parallel, counted_gpus()),
        fmt::format("for the product {}", use(nearest_divisors(gpus, model_parallel))));
    findings.distrust("layout.dp");
  } else if (model_parallel * l.dp != gpus) {
    findings.illegal(
        "layout.dp",
        fmt::format("tp*cp*pp*dp = {}*{}*{}*{} = {} is not the {} of the cluster", l.tp, l.cp, l.pp,
                    l.dp, capped_product({model_parallel, l.dp}), counted_gpus()),
        fmt::format("use {}, or leave dp out", gpus / model_parallel));
  } else if (l.dp > (1 << 20) && !stated.has("layout.dp")) {
    findings.illegal("layout.dp", fmt::format("{} replicas are too many", l.dp), "at most 1048576");
  }
}

// m = global_batch / (micro_batch * dp): a positive integer, for some schedules a multiple of pp.
void check_micro_batches(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"training.global_batch", "layout.micro_batch", "layout.dp", "layout.pp",
                        "layout.tp", "layout.cp", "layout.schedule", "cluster"})) {
    return;
  }
  const Layout& l = s.layout;
  const std::int64_t batch = s.training.global_batch;
  const Schedule& schedule = rules_of(l.schedule);
  const bool whole = schedule.whole_groups && l.micro_batch_group == 0;
  const std::int64_t group = whole ? l.pp : feeds_both_ends(l) ? 2 : 1;
  const std::int64_t unit = capped_product({l.micro_batch, l.dp, group});
  // A forecast replays every micro-batch. More than this many is a mistake in the batch.
  constexpr std::int64_t kMostMicroBatches = 1 << 16;
  if (batch % unit == 0) {
    if (s.micro_batches() > kMostMicroBatches) {
      findings.illegal(
          "training.global_batch",
          fmt::format("{} gives {} micro-batches a step", batch, s.micro_batches()),
          fmt::format("at most {}; it counts sequences: {} tokens are {} of them",
                      kMostMicroBatches, batch,
                      std::max<std::int64_t>(
                          1, batch / std::max<std::int64_t>(1, s.training.sequence_length))));
    }
    const std::int64_t least = schedule.least_rounds * l.pp;
    if (s.micro_batches() < least) {
      findings.illegal(
          "training.global_batch",
          fmt::format("{} gives {} micro-batches, and {} takes {} for each of {} stages", batch,
                      s.micro_batches(), schedule.name, schedule.least_rounds, l.pp),
          fmt::format("{} or more", capped_product({l.micro_batch, l.dp, least})));
    }
    return;
  }
  std::string message =
      fmt::format("{} is not a multiple of micro_batch*dp = {}*{}", batch, l.micro_batch, l.dp);
  if (group > 1 && batch % capped_product({l.micro_batch, l.dp}) == 0) {
    const std::string rule = whole ? fmt::format("a multiple of pp = {}", l.pp)
                                   : std::string("as many for each end of the pipeline");
    message = fmt::format("{} gives {} micro-batch{}, not {} ({})", batch, s.micro_batches(),
                          s.micro_batches() == 1 ? "" : "es", rule, schedule.name);
  }
  std::string hint = use(nearest_multiples(unit, batch));
  const std::int64_t replicas = capped_product({l.dp, group});
  if (batch % replicas == 0) {
    hint +=
        fmt::format("; for micro_batch {}", use(nearest_divisors(batch / replicas, l.micro_batch)));
  }
  findings.illegal("training.global_batch", message, hint);
}

void check_device(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"cluster", "training.precision"})) return;
  const DataType precision = s.training.precision;
  for (const Accelerator* device : s.cluster.accelerators()) {
    if (device->peak(precision)) continue;
    std::vector<std::string> known;
    for (const auto& [type, rate] : device->dense_peak) known.emplace_back(name_of(type));
    findings.illegal("training.precision",
                     fmt::format("{} has no {} arithmetic", device->name, name_of(precision)),
                     known.empty() ? "" : "use " + one_of(known));
    return;
  }
}

void check_sequence(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "training.sequence_length"})) return;
  const std::int64_t sequence = s.training.sequence_length;
  if (sequence == 0) {
    findings.missing("training.sequence_length", "is required: the model states no maximum",
                     "tokens per sequence");
    return;
  }
  if (s.model.position == Position::kLearned && sequence > s.model.max_positions) {
    findings.illegal(
        "training.sequence_length",
        fmt::format("{} exceeds the model's {} learned positions", sequence, s.model.max_positions),
        fmt::format("at most {}", s.model.max_positions));
    return;
  }
  if (!findings.trusts({"layout.tp", "layout.cp", "layout.sequence_parallel"})) return;
  const Layout& l = s.layout;
  // Context parallelism pairs an early with a late slice: two slices per rank.
  const std::int64_t slices =
      capped_product({l.cp > 1 ? 2 * l.cp : 1, l.sequence_parallel ? l.tp : 1});
  if (sequence % slices != 0) {
    findings.illegal("training.sequence_length",
                     fmt::format("{} does not divide into {} slices ({})", sequence, slices,
                                 l.cp > 1 ? "2*cp, times tp under sequence parallelism"
                                          : "tp, under sequence parallelism"),
                     use(nearest_multiples(slices, sequence)));
  }
}

void check_offered_method(const Scenario& s, Findings& findings) {
  const FrameworkTraits& framework = traits_of(s.training.framework);
  const auto offered = framework.context_methods;
  if (offered.empty() || std::ranges::find(offered, s.layout.cp_method) != offered.end()) return;
  std::vector<std::string> names;
  for (const ContextMethod method : offered) names.emplace_back(name_of(method));
  findings.illegal("layout.cp_method",
                   fmt::format("{} has no {}", framework.name, name_of(s.layout.cp_method)),
                   one_of(names));
}

// Ranks that exchange heads need heads to exchange.
void check_context_method(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "layout.tp", "layout.cp", "layout.cp_method"})) return;
  const Layout& l = s.layout;
  if (l.cp == 1) return;
  if (findings.trusts({"training.framework"})) check_offered_method(s, findings);
  const bool is_flat = l.cp_exchange == 1 || l.cp_exchange == l.cp;
  if (l.cp_method == ContextMethod::kHierarchical && is_flat) {
    findings.illegal(
        "layout.cp_method",
        fmt::format("hierarchical exchanges heads among {} of {} ranks here", l.cp_exchange, l.cp),
        l.cp_exchange == 1 ? "ring, which it would be" : "all_to_all, which it would be");
  }
  // Transformer Engine, context_parallel.py: a ring of keys and values takes no sliding window.
  const std::int64_t window = s.model.attention_window;
  const bool windowed = window > 0 && window < s.training.sequence_length &&
                        findings.trusts({"training.sequence_length"});
  const bool rings =
      l.cp_method == ContextMethod::kRing || l.cp_method == ContextMethod::kHierarchical;
  if (windowed && rings) {
    findings.illegal("layout.cp_method",
                     fmt::format("{} around a window of {} of {} tokens", name_of(l.cp_method),
                                 window, s.training.sequence_length),
                     "all_gather or all_to_all");
  }
  if (l.cp_method != ContextMethod::kAllToAll) return;
  const std::int64_t heads = s.model.heads / l.tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, s.model.kv_heads / l.tp);
  if (heads % l.cp == 0 && kv_heads % l.cp == 0) return;
  findings.illegal("layout.cp_method",
                   fmt::format("all_to_all over cp = {} with {} heads and {} key-value heads on a "
                               "tensor rank",
                               l.cp, heads, kv_heads),
                   "ring or all_gather");
}

void check_tensor_parallel(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "layout.tp"})) return;
  const Model& model = s.model;
  const std::int64_t tp = s.layout.tp;
  if (model.heads % tp != 0) {
    findings.illegal("layout.tp", fmt::format("{} does not divide {} heads", tp, model.heads),
                     use(nearest_divisors(model.heads, tp)));
    return;
  }
  // Fewer key-value heads than ranks are replicated, whole heads only.
  if (model.kv_heads % tp != 0 && tp % model.kv_heads != 0) {
    findings.illegal("layout.tp",
                     fmt::format("{} neither divides {} key-value heads nor is a multiple of them",
                                 tp, model.kv_heads),
                     use(nearest_divisors(model.kv_heads, tp)));
    return;
  }
  if (model.ffn % tp != 0) {
    findings.illegal("layout.tp",
                     fmt::format("{} does not divide the feed-forward width {}", tp, model.ffn),
                     use(nearest_divisors(std::gcd(model.ffn, model.heads), tp)));
  }
}

void check_experts(const Scenario& s, const Stated& stated, Findings& findings) {
  if (!findings.trusts({"model", "layout.ep", "layout.etp"})) return;
  const Layout& l = s.layout;
  if (!s.model.moe) {
    for (const auto& [path, degree] :
         {std::pair("layout.ep", stated.layout.ep), std::pair("layout.etp", stated.layout.etp)}) {
      if (degree > 1) {
        findings.illegal(path, fmt::format("{} on a model without experts", degree), "use 1");
      }
    }
    return;
  }
  if (s.model.moe->experts % l.ep != 0) {
    findings.illegal("layout.ep",
                     fmt::format("{} does not divide {} experts", l.ep, s.model.moe->experts),
                     use(nearest_divisors(s.model.moe->experts, l.ep)));
    return;
  }
  const Moe& moe = *s.model.moe;
  if (moe.ffn % l.etp != 0) {
    findings.illegal("layout.etp",
                     fmt::format("{} does not divide the experts' width {}", l.etp, moe.ffn),
                     use(nearest_divisors(moe.ffn, l.etp)));
    return;
  }
  if (findings.trusts({"layout.tp"}) && moe.shared_ffn % l.tp != 0) {
    findings.illegal(
        "layout.tp",
        fmt::format("{} does not divide the shared expert's width {}", l.tp, moe.shared_ffn),
        use(nearest_divisors(moe.shared_ffn, l.tp)));
    return;
  }
  const std::int64_t ranks = capped_product({l.tp, l.cp, l.dp});
  const std::int64_t expert_grid = capped_product({l.ep, l.etp});
  if (findings.trusts({"layout.tp", "layout.cp", "layout.dp"}) && ranks % expert_grid != 0) {
    findings.illegal("layout.ep",
                     fmt::format("ep*etp = {} does not divide tp*cp*dp = {}", expert_grid, ranks),
                     fmt::format("for the product {}", use(nearest_divisors(ranks, expert_grid))));
  }
}

std::string schedules_with(bool (*trait)(const Schedule&)) {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) {
    if (schedule->is_made() && trait(*schedule)) names.emplace_back(schedule->name);
  }
  return one_of(names);
}

void check_virtual_stages(const Layout& l, const Schedule& schedule, Findings& findings) {
  if (schedule.chunks == Schedule::kOneOrTwo) {
    findings.illegal("layout.virtual_stages",
                     fmt::format("{} where {} has 1 or 2", l.virtual_stages, schedule.name),
                     "use 1, or 2 for a model that comes back up");
    return;
  }
  if (schedule.chunks > 1) {
    findings.illegal(
        "layout.virtual_stages",
        fmt::format("{} where {} has {}", l.virtual_stages, schedule.name, schedule.chunks),
        fmt::format("use {}", schedule.chunks));
    return;
  }
  static const std::string others =  // searches come here millions of times
      schedules_with([](const Schedule& row) { return row.chunks == Schedule::kSeveral; });
  findings.illegal("layout.virtual_stages",
                   fmt::format("{} under schedule {}, which has one chunk per stage",
                               l.virtual_stages, schedule.name),
                   "use 1, or a schedule that takes virtual stages: " + others);
}

bool takes_chunks(const Schedule& schedule, std::int64_t chunks) {
  if (schedule.chunks == Schedule::kOneOrTwo) return chunks <= 2;
  return chunks == schedule.chunks;
}

void check_schedule(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"layout.schedule", "layout.virtual_stages", "layout.pp"})) return;
  const Layout& l = s.layout;
  const Schedule& schedule = rules_of(l.schedule);
  const bool several =
      schedule.chunks == Schedule::kSeveral || (schedule.from_file && l.virtual_stages > 1);
  const bool needs_stages =
      several || splits_backward(s.layout) || schedule.placement == Placement::kFolded;
  if (needs_stages && l.pp == 1) {
    findings.illegal("layout.schedule",
                     fmt::format("{} needs a pipeline, and pp is 1",
                                 schedule.from_file ? "a file with virtual stages" : schedule.name),
                     "pp 2 or more, or schedule 1f1b");
  } else if (feeds_both_ends(l) && l.pp % 2 != 0) {
    findings.illegal("layout.pp",
                     fmt::format("{} stages, and {} pairs each with another", l.pp, schedule.name),
                     use(nearest_multiples(2, l.pp)));
  } else if (feeds_both_ends(l) && l.virtual_stages != 2) {
    findings.illegal("layout.virtual_stages",
                     fmt::format("{} chunks per stage, and the model stands on the stages twice",
                                 l.virtual_stages),
                     "use 2");
  } else if (several && l.virtual_stages == 1) {
    findings.illegal("layout.virtual_stages",
                     fmt::format("{} takes 2 virtual stages or more", schedule.name),
                     "virtual_stages 2 or more, or a schedule with one, such as 1f1b");
  } else if (!several && !takes_chunks(schedule, l.virtual_stages)) {
    check_virtual_stages(l, schedule, findings);
  }
}

// Megatron-LM, core/pipeline_parallel/schedules.py: a group of fewer micro-batches than stages
// would leave stages waiting for each other.
void check_groups(const Scenario& s, Findings& findings) {
  constexpr const char* kPath = "layout.micro_batch_group";
  const Layout& l = s.layout;
  if (l.micro_batch_group == 0 ||
      !findings.trusts({kPath, "layout.schedule", "layout.pp", "layout.dp", "layout.micro_batch",
                        "training.global_batch"})) {
    return;
  }
  const Schedule& schedule = rules_of(l.schedule);
  if (!schedule.whole_groups) {
    static const std::string others =
        schedules_with([](const Schedule& row) { return row.whole_groups; });
    findings.illegal(kPath, fmt::format("with schedule {}", schedule.name),
                     "leave it out, or schedule " + others);
    return;
  }
  const std::int64_t m = s.micro_batches(), rest = m % l.micro_batch_group;
  if (l.micro_batch_group < l.pp || l.micro_batch_group > m) {
    findings.illegal(
        kPath, fmt::format("{} for {} stages and {} micro-batches", l.micro_batch_group, l.pp, m),
        fmt::format("{} (pp) to {}", l.pp, std::max(l.pp, m)));
  } else if (rest > 0 && rest < l.pp) {
    findings.illegal(kPath,
                     fmt::format("{} leaves a last group of {} of {} micro-batches for {} stages",
                                 l.micro_batch_group, rest, m, l.pp),
                     fmt::format("a last group of {} or more, or none", l.pp));
  }
}

// An order from a file fits one pipeline and one number of micro-batches.
void check_order_in_file(const Scenario& s, Findings& findings) {
  const Layout& l = s.layout;
  if (!l.schedule_text ||
      !findings.trusts({"layout.schedule", "layout.virtual_stages", "layout.pp", "layout.dp",
                        "layout.micro_batch", "training.global_batch"})) {
    return;
  }
  const auto orders =
      from_csv(*l.schedule_text, pipeline_of(l, s.micro_batches()), l.schedule_file);
  if (orders) return;
  for (const Error& error : orders.error()) {
    const std::string place = error.path.empty() ? error.file : error.file + ", " + error.path;
    findings.illegal("layout.schedule", fmt::format("{}: {}", place, error.message), error.hint);
  }
}

void check_stage_layers(const Scenario& s, Findings& findings) {
  const std::vector<std::int64_t>& list = s.layout.stage_layers;
  const char* path = "layout.stage_layers";
  const std::int64_t chunks = model_chunks(s.layout);
  if (s.layout.account_for_embedding || s.layout.account_for_loss) {
    findings.illegal(path, "does not go with account_for_embedding or account_for_loss",
                     "the list already says what each chunk holds");
  }
  if (static_cast<std::int64_t>(list.size()) != chunks) {
    findings.illegal(path, fmt::format("{} entries for {}", list.size(), words_of_chunks(s.layout)),
                     "one entry per chunk, in model order");
    return;
  }
  const std::int64_t sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
  if (sum != s.model.layers) {
    findings.illegal(path, fmt::format("the entries sum to {}", sum),
                     fmt::format("{}, the layers of the model", s.model.layers));
  }
  // Prediction modules may have a chunk of their own.
  const std::size_t full = list.size() - (s.layout.mtp_apart ? 2 : 1);
  for (std::size_t i = 1; i < full; ++i) {
    if (list[i] == 0) {
      findings.illegal(fmt::format("{}[{}]", path, i), "0 layers between the end chunks",
                       "only the chunks with embedding or head may be without layers");
    }
  }
}

void check_modules_apart(const Scenario& s, Findings& findings) {
  constexpr const char* kPath = "layout.mtp_apart";
  if (!s.layout.mtp_apart || !findings.trusts({"model", "layout.pp", kPath})) return;
  if (s.model.mtp_layers == 0) {
    findings.illegal(kPath, "the model has no modules of multi-token prediction", "false");
  } else if (s.layout.pp == 1) {
    findings.illegal(kPath, "there is no other stage than the head's", "false, or pp 2 or more");
  }
}

void check_chunks(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"model", "layout.pp", "layout.virtual_stages", "layout.stage_layers",
                        "layout.schedule"})) {
    return;
  }
  const Layout& l = s.layout;
  if (!l.stage_layers.empty()) return check_stage_layers(s, findings);
  const std::int64_t places =
      s.model.layers + (l.account_for_embedding ? 1 : 0) + (l.account_for_loss ? 1 : 0);
  if (model_chunks(l) > places) {
    const bool by_stages = l.pp > places;
    findings.illegal(by_stages ? "layout.pp" : "layout.virtual_stages",
                     fmt::format("{} for {} layers", words_of_chunks(l), s.model.layers),
                     fmt::format("at most {}", by_stages ? places : places / l.pp));
  }
}

void check_zero(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"layout.zero", "layout.pp", "training.framework"})) return;
  const Layout& l = s.layout;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (l.zero == 1 && !framework.has_zero_1) {
    findings.illegal("layout.zero", fmt::format("1 with framework {}", framework.name),
                     "0 replicates, 2 shards gradients, 3 also parameters");
  }
  if (framework.check_zero != nullptr) framework.check_zero(s, findings);
  if (findings.trusts({"layout.shard_group", "layout.dp", "layout.cp"}) && l.shard_group > 0 &&
      (l.dp * l.cp) % l.shard_group != 0) {
    findings.illegal("layout.shard_group",
                     fmt::format("{} does not divide dp*cp = {}", l.shard_group, l.dp * l.cp),
                     use(nearest_divisors(l.dp * l.cp, l.shard_group)));
  }
}

void check_early_stop(const Scenario& s, Findings& findings) {
  if (!s.training.early_stop || !findings.trusts({"training.framework"})) return;
  const FrameworkTraits& framework = traits_of(s.training.framework);
  if (framework.checkpoint_stops_early_since) return;
  findings.illegal("training.early_stop",
                   fmt::format("checkpoints of {} run whole layers again", framework.name),
                   "false, or framework fsdp");
}

void check_attention(const Scenario& s, const Stated& stated, Findings& findings) {
  constexpr const char* kPath = "training.attention_kernel";
  const Training& t = s.training;
  const bool unfused = t.attention == AttentionKernel::kUnfused;
  if (unfused == (t.attention_kernel == name_of(AttentionKernel::kUnfused))) return;
  if (!stated.has(kPath) || !findings.trusts({"training.attention", kPath})) return;
  findings.illegal(kPath,
                   fmt::format("{} with attention {}", t.attention_kernel, name_of(t.attention)),
                   "leave one of the two out");
}

void check_grad_clip(const Scenario& s, Findings& findings) {
  if (!findings.trusts({"training.grad_clip", "layout.schedule"})) return;
  const Schedule& schedule = rules_of(s.layout.schedule);
  // A file has the order of passes alone: the scenario says how its step ends.
  const bool may =
      schedule.validates_after_step || (schedule.from_file && splits_backward(s.layout));
  if (s.training.grad_clip == GradClip::kPostValidation && !may) {
    static const std::string others =
        schedules_with([](const Schedule& row) { return row.validates_after_step; });
    findings.illegal("training.grad_clip",
                     fmt::format("post_validation under schedule {}", schedule.name),
                     "global or none; schedules that validate after the step: " + others +
                         ", and a file whose backward is split");
  }
}

}  // namespace

void check_legality(const Scenario& scenario, const Stated& stated, Findings& findings) {
  check_outer_steps(scenario, stated, findings);
  check_tensor_parallel(scenario, findings);
  check_degrees(scenario, stated, findings);
  check_micro_batches(scenario, findings);
  check_device(scenario, findings);
  check_sequence(scenario, findings);
  check_context_method(scenario, findings);
  check_experts(scenario, stated, findings);
  check_schedule(scenario, findings);
  check_groups(scenario, findings);
  check_order_in_file(scenario, findings);
  check_chunks(scenario, findings);
  check_passes(scenario, findings);
  check_modules_apart(scenario, findings);
  check_zero(scenario, findings);
  const auto check_overlap = traits_of(scenario.training.framework).check_overlap;
  if (check_overlap != nullptr) check_overlap(scenario, findings);
  check_precision(scenario, stated, findings);
  check_optimizer(scenario, stated, findings);
  check_offload(scenario, findings);
  check_attention(scenario, stated, findings);
  check_documents(scenario, stated, findings);
  check_grad_clip(scenario, findings);
  check_early_stop(scenario, findings);
}

}  // namespace stepcast
