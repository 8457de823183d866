// SPDX-License-Identifier: Apache-2.0
#include "layout/key_search.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "layout/axis_group.h"
#include "layout/choices.h"
#include "layout/context_ranks.h"
#include "layout/framework.h"
#include "layout/key_types.h"
#include "layout/pipeline.h"
#include "layout/scenario.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

using Values = KeySearch::Values;

Values divisors(std::int64_t number, std::int64_t most) {
  Values out;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) out.push_back(d);
  }
  return out;
}

std::string plain(std::int64_t value) { return fmt::format("{}", value); }
std::string truth(std::int64_t value) { return value != 0 ? "true" : "false"; }
Values both(const Scenario&) { return {0, 1}; }

Values tensor_ranks(const Scenario& s) { return divisors(s.cluster.gpus(), s.model.heads); }
Values stages(const Scenario& s) {
  // With more tensor ranks than GPUs none is legal, and the rule says so.
  return divisors(std::max<std::int64_t>(1, s.cluster.gpus() / s.layout.tp), s.model.layers);
}

// Ranks that share a sequence want 4096 tokens or more each (arXiv 2603.07685, section 6.3).
// Sequences shorter than this leave cp out of the search, which stays short.
constexpr std::int64_t kLongSequence = 16384, kTokensOfRank = 4096;
bool offers_context(const Scenario& s) {
  return s.training.sequence_length >= kLongSequence &&
         s.training.attention == AttentionKernel::kFlash &&
         !traits_of(s.training.framework).context_methods.empty();
}
Values context_ranks(const Scenario& s) {
  if (!offers_context(s)) return {1};
  return divisors(s.cluster.gpus(), s.training.sequence_length / kTokensOfRank);
}
// Lists the framework's methods, once each if as many ranks exchange heads under two of them.
Values context_methods(const Scenario& s) {
  const std::span<const ContextMethod> offered = traits_of(s.training.framework).context_methods;
  if (s.layout.cp == 1 || offered.empty()) return {0};
  Values out;
  Scenario tried = s;
  std::vector<std::int64_t> exchanging;
  for (const ContextMethod method : offered) {
    tried.layout.cp_method = method;
    settle_context(tried);
    const bool gathers = method == ContextMethod::kAllGather;
    if (!gathers && std::ranges::find(exchanging, tried.layout.cp_exchange) != exchanging.end()) {
      continue;
    }
    if (!gathers) exchanging.push_back(tried.layout.cp_exchange);
    out.push_back(static_cast<std::int64_t>(method));
  }
  return out;
}

// All, or those that reach each other without the network.
Values shard_groups(const Scenario& s) {
  const Layout& l = s.layout;
  const std::int64_t ranks = l.dp * l.cp;
  const std::int64_t near = s.cluster.spec.gpus_per_domain() / l.tp;
  const bool divides = near > 1 && near < ranks && ranks % near == 0;
  const bool offered = traits_of(s.training.framework).shards_in_groups && l.zero >= 2;
  return divides && offered ? Values{0, near} : Values{0};
}

// With a batch that the replicas do not divide, none is legal, and the rule says so.
Values micro_batches(const Scenario& s) {
  const std::int64_t share = std::max<std::int64_t>(1, s.training.global_batch / s.layout.dp);
  return divisors(share, share);
}

const Schedule& schedule_rules(std::int64_t row) {
  return rules_of(static_cast<ScheduleKind>(row));
}

// Lists the schedules that a search tries, in the order of their places.
Values schedule_values(const Scenario&) {
  static const Values all = [] {
    Values out;
    for (std::size_t row = 0; row < schedules().size(); ++row) {
      if (schedules()[row]->search_place >= 0) out.push_back(static_cast<std::int64_t>(row));
    }
    std::ranges::sort(out, {}, [](std::int64_t row) { return schedule_rules(row).search_place; });
    return out;
  }();
  return all;
}
// Keeps the framework's. With one micro-batch all schedules without virtual stages are one.
Values distinct_schedules(const Scenario& s) {
  Values out = schedule_values(s);
  if (s.micro_batches() == 1) {
    const auto alike = [](std::int64_t row) { return schedule_rules(row).chunks == 1; };
    const auto first = std::ranges::find_if(out, alike);
    out.erase(std::remove_if(first + 1, out.end(), alike), out.end());
  }
  const FrameworkTraits& framework = traits_of(s.training.framework);
  std::erase_if(
      out, [&](std::int64_t row) { return !framework.offers(static_cast<ScheduleKind>(row)); });
  return out;
}

Values virtual_stages(const Scenario& s) {
  const std::int64_t chunks = rules_of(s.layout.schedule).chunks;
  if (chunks == Schedule::kOneOrTwo) {
    return 2 * s.layout.pp <= s.model.layers ? Values{1, 2} : Values{1};
  }
  if (chunks != Schedule::kSeveral) return {s.layout.virtual_stages};
  Values out;
  for (std::int64_t v = 2; v * s.layout.pp <= s.model.layers; ++v) out.push_back(v);
  return out;
}

// The modes, and full recomputation of the first n layers of each chunk.
constexpr std::int64_t kModes = 3;
std::int64_t layers_of_largest_chunk(const Scenario& s) {
  const std::int64_t chunks = model_chunks(s.layout);
  return (s.model.layers + chunks - 1) / chunks;
}
Values recomputations(const Scenario& s) {
  Values out;
  for (std::int64_t value = 0; value < kModes + layers_of_largest_chunk(s) - 1; ++value) {
    out.push_back(value);
  }
  return out;
}
void put_recompute(Settings& settings, std::int64_t value) {
  Recompute out;
  out.mode = static_cast<RecomputeMode>(std::min(value, kModes - 1));
  out.layers = std::max<std::int64_t>(0, value - (kModes - 1));
  if (out.mode == RecomputeMode::kSelective) {
    out.modules.named = {RecomputedModule::kCoreAttention};
  }
  settings.layout.recompute = std::move(out);
}
std::int64_t recompute_of(const Layout& layout) {
  const auto mode = static_cast<std::int64_t>(layout.recompute.mode);
  return layout.recompute.mode == RecomputeMode::kFull ? mode + layout.recompute.layers : mode;
}
std::string recompute_text(std::int64_t value) {
  if (value < kModes) return name_of(static_cast<RecomputeMode>(value));
  return fmt::format(R"({{"mode":"full","layers":{}}})", value - (kModes - 1));
}

// Replicas and stages go before, between and behind what a layer is cut into, which stays together.
std::vector<std::string> orders_to_try() {
  const std::string_view replicas = row_of(Axis::kDp).in_order, stages = row_of(Axis::kPp).in_order;
  std::string in_layers;
  for_each_word(kUsualOrder, [&](std::string_view word) {
    if (word == replicas || word == stages) return;
    in_layers += (in_layers.empty() ? "" : "-") + std::string(word);
  });
  std::vector<std::string> out;
  const std::array<std::string_view, 3> parts = {in_layers, replicas, stages};
  std::array<std::size_t, 3> places = {0, 1, 2};
  do {
    out.push_back(fmt::format("{}-{}-{}", parts[places[0]], parts[places[1]], parts[places[2]]));
  } while (std::ranges::next_permutation(places).found);
  return out;
}
const std::vector<std::string>& tried_orders() {
  static const std::vector<std::string> all = orders_to_try();
  return all;
}
Values orders(const Scenario&) {
  Values out(tried_orders().size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}
// A dimension of an order, and the ranks along it. The degree of experts is searched later: without
// a function of its own it may be more than one where there are experts.
struct Dimension {
  std::string_view word;
  std::int64_t (*ranks)(const Layout&);
};
std::vector<Dimension> ordered_dimensions() {
  std::vector<Dimension> out;
  for_each_word(kUsualOrder, [&](std::string_view word) {
    const std::span<const AxisRow> axes = all_axes();
    const auto dense = std::ranges::find_if(axes, [&](const AxisRow& row) {
      return row.part != GridPart::kExpert && word == row.in_order;
    });
    out.push_back({word, dense == axes.end() ? nullptr : dense->extent});
  });
  return out;
}

// `is_long`: a bit for each dimension of more than one rank. The others have no place among these.
Values orders_telling_apart(const std::vector<Dimension>& dimensions, std::size_t is_long) {
  Values out;
  std::vector<std::string> seen;
  for (std::size_t index = 0; index < tried_orders().size(); ++index) {
    std::string shown;
    for_each_word(tried_orders()[index], [&](std::string_view word) {
      const auto at = std::ranges::find(dimensions, word, &Dimension::word) - dimensions.begin();
      if ((is_long >> at & 1) != 0) shown += word;
    });
    if (std::ranges::find(seen, shown) != seen.end()) continue;
    seen.push_back(std::move(shown));
    out.push_back(static_cast<std::int64_t>(index));
  }
  return out;
}

Values distinct_orders(const Scenario& s) {
  static const std::vector<Dimension> dimensions = ordered_dimensions();
  static const std::vector<Values> known = [] {
    std::vector<Values> out;
    for (std::size_t is_long = 0; is_long < std::size_t{1} << dimensions.size(); ++is_long) {
      out.push_back(orders_telling_apart(dimensions, is_long));
    }
    return out;
  }();
  const std::int64_t experts = s.model.moe ? s.model.moe->experts : 1;
  std::size_t is_long = 0;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::int64_t ranks = dimensions[i].ranks ? dimensions[i].ranks(s.layout) : experts;
    if (ranks > 1) is_long |= std::size_t{1} << i;
  }
  return known[is_long];
}
void put_order(Settings& settings, std::int64_t value) {
  settings.layout.order = tried_orders()[static_cast<std::size_t>(value)];
}
// One that is no value of the search comes behind all that are.
std::int64_t order_of(const Layout& layout) {
  return std::ranges::find(tried_orders(), layout.order) - tried_orders().begin();
}
std::string order_text(std::int64_t value) {
  const auto index = static_cast<std::size_t>(value);
  return index < tried_orders().size() ? tried_orders()[index] : "another order";
}

bool has_replicas(const Scenario& s) { return s.layout.dp * s.layout.cp > 1; }

// Experts on every rank, and no more ranks than a stage has.
Values expert_ranks(const Scenario& s) {
  if (!s.model.moe) return {1};
  const std::int64_t ranks = s.layout.tp * s.layout.cp * s.layout.dp;
  return divisors(std::gcd(s.model.moe->experts, ranks), ranks);
}
// Experts are cut as the rest of the layer is, or not at all.
Values ranks_of_expert(const Scenario& s) {
  if (!s.model.moe || s.layout.tp == 1) return {1};
  return {1, s.layout.tp};
}

Values zero_stages(const Scenario&) { return {0, 1, 2, 3}; }

// Without replicas nothing is sharded. But the stage may still choose the framework (on one GPU),
// and what some do with gradients.
Values distinct_zero(const Scenario& s) {
  const bool all_equal = !has_replicas(s) && traits_of(s.training.framework).zero_needs_replicas &&
                         s.layout.tp * s.layout.pp > 1;
  return all_equal ? Values{s.layout.zero} : zero_stages(s);
}

// Both, the default first; the default alone where nothing tells them apart.
template <auto member>
Values either(bool matters, const Scenario& s) {
  const std::int64_t usual = field(s, member) ? 1 : 0;
  return matters ? Values{usual, 1 - usual} : Values{usual};
}
Values distinct_grad_reduce(const Scenario& s) {
  return either<&Overlap::grad_reduce>(has_replicas(s), s);
}
Values distinct_param_gather(const Scenario& s) {
  return either<&Overlap::param_gather>(has_replicas(s) && s.layout.zero >= 1, s);
}
Values distinct_tp_overlap(const Scenario& s) { return either<&Overlap::tp>(s.layout.tp > 1, s); }
Values distinct_pp_overlap(const Scenario& s) {
  const FrameworkTraits& framework = traits_of(s.training.framework);
  const bool offered = framework.offers_pipeline_overlap(s.layout.schedule);
  return either<&Overlap::pp>(s.layout.pp > 1 && offered, s);
}
Values distinct_sequence_parallel(const Scenario& s) {
  return s.layout.tp > 1 ? Values{1, 0} : Values{0};
}

template <auto member>
void put(Settings& settings, std::int64_t value) {
  using Field = std::remove_reference_t<decltype(field(settings, member))>;
  field(settings, member) = static_cast<Field>(value);
}
struct OfLayout {
  const Layout& layout;
};
template <auto member>
std::int64_t of(const Layout& layout) {
  const OfLayout settings{layout};
  return static_cast<std::int64_t>(field(settings, member));
}
std::string method_text(std::int64_t value) { return name_of(static_cast<ContextMethod>(value)); }
std::string schedule_text(std::int64_t row) { return name_of(static_cast<ScheduleKind>(row)); }

}  // namespace

// The levels go from what others depend on to keys without dependants. All degrees depend on cp,
// which depends on the sequence alone.
const KeySearch kSearchCp = {
    0,     context_ranks,         context_ranks, put<&Layout::cp>, of<&Layout::cp>,
    plain, KeySearch::Adds::kAxis};
const KeySearch kSearchTp = {
    1,     tensor_ranks,          tensor_ranks, put<&Layout::tp>, of<&Layout::tp>,
    plain, KeySearch::Adds::kAxis};
const KeySearch kSearchPp = {
    2, stages, stages, put<&Layout::pp>, of<&Layout::pp>, plain, KeySearch::Adds::kAxis};
const KeySearch kSearchMicroBatch = {3,
                                     micro_batches,
                                     micro_batches,
                                     put<&Layout::micro_batch>,
                                     of<&Layout::micro_batch>,
                                     plain,
                                     KeySearch::Adds::kNothing};
const KeySearch kSearchEp = {
    4,     expert_ranks,          expert_ranks, put<&Layout::ep>, of<&Layout::ep>,
    plain, KeySearch::Adds::kAxis};
const KeySearch kSearchEtp = {
    5, ranks_of_expert, ranks_of_expert, put<&Layout::etp>, of<&Layout::etp>, plain};
const KeySearch kSearchSchedule = {6,
                                   schedule_values,
                                   distinct_schedules,
                                   put<&Layout::schedule>,
                                   of<&Layout::schedule>,
                                   schedule_text};
const KeySearch kSearchVirtualStages = {
    7,    virtual_stages, virtual_stages, put<&Layout::virtual_stages>, of<&Layout::virtual_stages>,
    plain};
const KeySearch kSearchRecompute = {
    8, recomputations, recomputations, put_recompute, recompute_of, recompute_text};
const KeySearch kSearchSequenceParallel = {9,
                                           both,
                                           distinct_sequence_parallel,
                                           put<&Layout::sequence_parallel>,
                                           of<&Layout::sequence_parallel>,
                                           truth};
const KeySearch kSearchZero = {
    10, zero_stages, distinct_zero, put<&Layout::zero>, of<&Layout::zero>, plain};
const KeySearch kSearchCpMethod = {
    11,         context_methods, context_methods, put<&Layout::cp_method>, of<&Layout::cp_method>,
    method_text};
const KeySearch kSearchShardGroup = {
    12, shard_groups, shard_groups, put<&Layout::shard_group>, of<&Layout::shard_group>, plain};
const KeySearch kSearchOrder = {13, orders, distinct_orders, put_order, order_of, order_text};
const KeySearch kSearchOverlapGradReduce = {
    14, both, distinct_grad_reduce, put<&Overlap::grad_reduce>, of<&Overlap::grad_reduce>, truth};
const KeySearch kSearchOverlapParamGather = {
    15,   both, distinct_param_gather, put<&Overlap::param_gather>, of<&Overlap::param_gather>,
    truth};
const KeySearch kSearchOverlapTp = {
    16, both, distinct_tp_overlap, put<&Overlap::tp>, of<&Overlap::tp>, truth};
const KeySearch kSearchOverlapPp = {
    17, both, distinct_pp_overlap, put<&Overlap::pp>, of<&Overlap::pp>, truth};

}  // namespace stepcast
