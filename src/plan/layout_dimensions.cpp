// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "layout/framework.h"
#include "plan/layout_dimension.h"

namespace stepcast {
namespace {

using Values = LayoutDimension::Values;
using Value = std::optional<std::int64_t>;

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

// Where nothing tells the values apart: the default stays.
Values either(bool matters, std::int64_t default_value) {
  return matters ? Values{default_value, 1 - default_value} : Values{default_value};
}

template <std::optional<std::int64_t> LayoutInput::*member>
void set_count(LayoutInput& layout, Value value) {
  layout.*member = value;
}
template <std::optional<std::int64_t> LayoutInput::*member>
bool states(const LayoutInput& layout) {
  return (layout.*member).has_value();
}
template <auto Layout::*member>
std::int64_t has(const Layout& layout) {
  return static_cast<std::int64_t>(layout.*member);
}
template <std::optional<bool> OverlapInput::*member>
void set_overlap(LayoutInput& layout, Value value) {
  layout.overlap.*member = value ? std::optional(*value != 0) : std::nullopt;
}
template <std::optional<bool> OverlapInput::*member>
bool states_overlap(const LayoutInput& layout) {
  return (layout.overlap.*member).has_value();
}
template <bool Overlap::*member>
std::int64_t has_overlap(const Layout& layout) {
  return layout.overlap.*member ? 1 : 0;
}

Values tensor_ranks(const Scenario& s) { return divisors(s.cluster.gpus(), s.model.heads); }
Values stages(const Scenario& s) {
  // With more tensor ranks than GPUs none is legal, and the rule says so.
  return divisors(std::max<std::int64_t>(1, s.cluster.gpus() / s.layout.tp), s.model.layers);
}

// With a batch that the replicas do not divide, none is legal, and the rule says so.
Values micro_batches(const Scenario& s) {
  const std::int64_t share = std::max<std::int64_t>(1, s.training.global_batch / s.layout.dp);
  return divisors(share, share);
}

Values schedules(const Scenario&) {
  return {static_cast<std::int64_t>(ScheduleKind::k1F1B),
          static_cast<std::int64_t>(ScheduleKind::kInterleaved),
          static_cast<std::int64_t>(ScheduleKind::kGpipe)};
}
// Those of the framework. Of one micro-batch all schedules without virtual stages are the same.
Values distinct_schedules(const Scenario& s) {
  Values out = schedules(s);
  if (s.micro_batches() == 1) out.pop_back();
  std::erase_if(out, [&](std::int64_t schedule) {
    return !offers(s.training.framework, static_cast<ScheduleKind>(schedule));
  });
  return out;
}

Values virtual_stages(const Scenario& s) {
  if (s.layout.schedule != ScheduleKind::kInterleaved) return {s.layout.virtual_stages};
  Values out;
  for (std::int64_t v = 2; v * s.layout.pp <= s.model.layers; ++v) out.push_back(v);
  return out;
}

// The modes, and full recomputation of the first n layers of each chunk.
constexpr std::int64_t kModes = 3;
std::int64_t layers_of_largest_chunk(const Scenario& s) {
  const std::int64_t chunks = s.layout.pp * s.layout.virtual_stages;
  return (s.model.layers + chunks - 1) / chunks;
}
Values recomputations(const Scenario& s) {
  Values out;
  for (std::int64_t value = 0; value < kModes + layers_of_largest_chunk(s) - 1; ++value) {
    out.push_back(value);
  }
  return out;
}
void set_recompute(LayoutInput& layout, Value value) {
  layout.recompute.reset();
  if (!value) return;
  Recompute& out = layout.recompute.emplace();
  out.mode = static_cast<RecomputeMode>(std::min(*value, kModes - 1));
  out.layers = std::max<std::int64_t>(0, *value - (kModes - 1));
  if (out.mode == RecomputeMode::kSelective) out.modules = {"core_attention"};
}
std::int64_t recompute_of(const Layout& layout) {
  const auto mode = static_cast<std::int64_t>(layout.recompute.mode);
  return layout.recompute.mode == RecomputeMode::kFull ? mode + layout.recompute.layers : mode;
}
std::string recompute_text(std::int64_t value) {
  if (value < kModes) return name_of(static_cast<RecomputeMode>(value));
  return fmt::format(R"({{"mode":"full","layers":{}}})", value - (kModes - 1));
}

constexpr std::array<const char*, 6> kOrders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp",
                                                "dp-tp-cp-ep-pp", "dp-pp-tp-cp-ep",
                                                "pp-tp-cp-ep-dp", "pp-dp-tp-cp-ep"};
Values orders(const Scenario&) { return {0, 1, 2, 3, 4, 5}; }
// A dimension of one rank has no place among the others.
Values distinct_orders(const Scenario& s) {
  const auto shown = [&](std::int64_t index) {
    std::string out;
    for (const char letter : std::string_view(kOrders[static_cast<std::size_t>(index)])) {
      out += letter;
    }
    const std::pair<const char*, std::int64_t> degrees[] = {{"tp", s.layout.tp},
                                                            {"cp", s.layout.cp},
                                                            {"ep", 1},
                                                            {"dp", s.layout.dp},
                                                            {"pp", s.layout.pp}};
    for (const auto& [name, degree] : degrees) {
      if (degree == 1) out.erase(out.find(name), 2);
    }
    std::erase(out, '-');
    return out;
  };
  Values out;
  std::vector<std::string> seen;
  for (const std::int64_t index : orders(s)) {
    if (std::ranges::find(seen, shown(index)) != seen.end()) continue;
    seen.push_back(shown(index));
    out.push_back(index);
  }
  return out;
}
void set_order(LayoutInput& layout, Value value) {
  layout.order.reset();
  if (value) layout.order = kOrders[static_cast<std::size_t>(*value)];
}
// One that is no value of the search comes behind all that are.
std::int64_t order_of(const Layout& layout) {
  return std::ranges::find(kOrders, layout.order) - kOrders.begin();
}
std::string order_text(std::int64_t value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kOrders.size() ? kOrders[index] : "another order";
}

bool has_replicas(const Scenario& s) { return s.layout.dp * s.layout.cp > 1; }

Values zero_stages(const Scenario&) { return {0, 1, 2, 3}; }

// Without replicas nothing is sharded. But the stage may still choose the framework (on one GPU),
// and what DeepSpeed and FSDP do with gradients.
Values distinct_zero(const Scenario& s) {
  const bool megatron = s.training.framework == Framework::kMegatron;
  const bool all_equal = !has_replicas(s) && megatron && s.layout.tp * s.layout.pp > 1;
  return all_equal ? Values{s.layout.zero} : zero_stages(s);
}

}  // namespace

const std::vector<LayoutDimension>& layout_dimensions() {
  static const std::vector<LayoutDimension> all = {
      {"layout.tp", states<&LayoutInput::tp>, tensor_ranks, tensor_ranks, true,
       set_count<&LayoutInput::tp>, has<&Layout::tp>, plain},
      {"layout.pp", states<&LayoutInput::pp>, stages, stages, true, set_count<&LayoutInput::pp>,
       has<&Layout::pp>, plain},
      {"layout.micro_batch", states<&LayoutInput::micro_batch>, micro_batches, micro_batches, true,
       set_count<&LayoutInput::micro_batch>, has<&Layout::micro_batch>, plain},
      {"layout.schedule", [](const LayoutInput& l) { return l.schedule.has_value(); }, schedules,
       distinct_schedules, true,
       [](LayoutInput& l, Value v) {
         l.schedule = v ? std::optional(static_cast<ScheduleKind>(*v)) : std::nullopt;
       },
       has<&Layout::schedule>,
       [](std::int64_t v) { return std::string(name_of(static_cast<ScheduleKind>(v))); }},
      {"layout.virtual_stages", states<&LayoutInput::virtual_stages>, virtual_stages,
       virtual_stages, true, set_count<&LayoutInput::virtual_stages>, has<&Layout::virtual_stages>,
       plain},
      {"layout.recompute", [](const LayoutInput& l) { return l.recompute.has_value(); },
       recomputations, recomputations, true, set_recompute, recompute_of, recompute_text},
      {"layout.sequence_parallel",
       [](const LayoutInput& l) { return l.sequence_parallel.has_value(); }, both,
       [](const Scenario& s) {
         return s.layout.tp > 1 ? Values{1, 0} : Values{0};
       },
       false,
       [](LayoutInput& l, Value v) {
         l.sequence_parallel = v ? std::optional(*v != 0) : std::nullopt;
       },
       has<&Layout::sequence_parallel>, truth},
      {"layout.zero", [](const LayoutInput& l) { return l.zero.has_value(); }, zero_stages,
       distinct_zero, false,
       [](LayoutInput& l, Value v) {
         l.zero = v ? std::optional(static_cast<int>(*v)) : std::nullopt;
       },
       has<&Layout::zero>, plain},
      {"layout.order", [](const LayoutInput& l) { return l.order.has_value(); }, orders,
       distinct_orders, false, set_order, order_of, order_text},
      {"layout.overlap.grad_reduce", states_overlap<&OverlapInput::grad_reduce>, both,
       [](const Scenario& s) { return either(has_replicas(s), s.layout.overlap.grad_reduce); },
       false, set_overlap<&OverlapInput::grad_reduce>, has_overlap<&Overlap::grad_reduce>, truth},
      {"layout.overlap.param_gather", states_overlap<&OverlapInput::param_gather>, both,
       [](const Scenario& s) {
         return either(has_replicas(s) && s.layout.zero >= 1, s.layout.overlap.param_gather);
       },
       false, set_overlap<&OverlapInput::param_gather>, has_overlap<&Overlap::param_gather>, truth},
      {"layout.overlap.tp", states_overlap<&OverlapInput::tp>, both,
       [](const Scenario& s) { return either(s.layout.tp > 1, s.layout.overlap.tp); }, false,
       set_overlap<&OverlapInput::tp>, has_overlap<&Overlap::tp>, truth},
      {"layout.overlap.pp", states_overlap<&OverlapInput::pp>, both,
       [](const Scenario& s) {
         const bool offered = offers_pipeline_overlap(s.training.framework, s.layout.schedule);
         return either(s.layout.pp > 1 && offered, s.layout.overlap.pp);
       },
       false, set_overlap<&OverlapInput::pp>, has_overlap<&Overlap::pp>, truth},
  };
  return all;
}

}  // namespace stepcast
