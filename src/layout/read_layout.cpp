// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "layout/choices.h"
#include "layout/scenario_input.h"

namespace stepcast {
namespace {

constexpr std::int64_t kMaxDegree = 1 << 20;  // a million ranks, layers or chunks

std::vector<std::string> read_modules(const JsonValue& list) {
  const std::vector<std::string> known = {"core_attention", "mlp_act",     "mlp",
                                          "layernorm",      "moe_act",     "moe",
                                          "shared_experts", "mla_up_proj", "torchtitan_op"};
  std::vector<std::string> modules;
  for (const JsonValue& item : list.items()) {
    const auto name = item.text();
    if (!name) continue;
    if (std::ranges::find(known, *name) == known.end()) {
      std::string hint = "some of " + one_of(known);
      const std::string near = did_you_mean(*name, known);
      if (!near.empty()) hint += "; " + near;
      item.fail(ErrorCode::kBadValue, fmt::format("'{}' is not a module", *name), hint);
    } else if (std::ranges::find(modules, *name) != modules.end()) {
      item.fail(ErrorCode::kBadValue, fmt::format("'{}' stands twice", *name), "keep one of them");
    } else {
      modules.push_back(*name);
    }
  }
  return modules;
}

Recompute read_recompute_object(const JsonValue& value) {
  ObjectReader object(value);
  Recompute recompute;
  const auto stated = object.required("mode");
  const auto mode = stated ? object.choice("mode", recompute_mode_names()) : std::nullopt;
  if (mode) recompute.mode = static_cast<RecomputeMode>(*mode);
  recompute.layers = object.integer("layers", 1, kMaxDegree).value_or(0);
  recompute.every = object.integer("every", 1, kMaxDegree).value_or(1);
  if (const auto modules = object.value("modules")) {
    recompute.modules = read_modules(*modules);
    if (mode && recompute.mode != RecomputeMode::kSelective) {
      modules->fail(ErrorCode::kIllegal,
                    fmt::format("modules do not go with mode '{}'", name_of(recompute.mode)),
                    "mode selective takes modules");
    }
  }
  const bool narrowed = recompute.layers > 0 || recompute.every > 1;
  if (mode && recompute.mode == RecomputeMode::kNone && narrowed) {
    value.fail(ErrorCode::kIllegal, "layers and every do not go with mode 'none'",
               "mode selective or full");
  }
  object.finish();
  return recompute;
}

std::optional<Recompute> read_recompute(ObjectReader& layout) {
  Recompute recompute;
  const auto value = layout.value("recompute");
  if (!value) return std::nullopt;
  if (value->is_object()) {
    recompute = read_recompute_object(*value);
  } else if (const auto mode = layout.choice("recompute", recompute_mode_names())) {
    recompute.mode = static_cast<RecomputeMode>(*mode);
  }
  if (recompute.mode == RecomputeMode::kSelective && recompute.modules.empty()) {
    recompute.modules = {"core_attention"};
  }
  return recompute;
}

void read_schedule(ObjectReader& object, LayoutInput& layout) {
  const auto value = object.value("schedule");
  if (!value) return;
  constexpr std::string_view kFile = "file:";
  if (value->is_text() && value->text()->starts_with(kFile)) {
    layout.schedule = ScheduleKind::kFile;
    layout.schedule_file = value->text()->substr(kFile.size());
    if (layout.schedule_file.empty()) {
      value->fail(ErrorCode::kBadValue, "'file:' names no file", "write file:PATH");
    }
    return;
  }
  const auto found = object.choice("schedule", schedule_names());
  if (found) layout.schedule = static_cast<ScheduleKind>(*found);
}

void read_shard_group(ObjectReader& object, LayoutInput& layout) {
  const auto value = object.value("shard_group");
  if (!value) return;
  if (value->is_text()) {
    if (object.choice("shard_group", {"all"})) layout.shard_group = 0;
  } else {
    layout.shard_group = object.integer("shard_group", 1, kMaxDegree);
  }
}

std::optional<std::string> read_order(ObjectReader& object) {
  const auto order = object.text("order");
  if (!order) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= order->size();) {
    const std::size_t end = std::min(order->find('-', begin), order->size());
    names.push_back(order->substr(begin, end - begin));
    begin = end + 1;
  }
  std::ranges::sort(names);
  if (names != std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"}) {
    object.fail("order", ErrorCode::kBadValue, fmt::format("'{}' is not an order", *order),
                "tp, cp, ep, dp and pp once each, fastest first, as in tp-cp-ep-dp-pp");
    return std::nullopt;
  }
  return order;
}

OverlapInput read_overlap(const JsonValue& value) {
  ObjectReader object(value);
  OverlapInput overlap;
  overlap.grad_reduce = object.boolean("grad_reduce");
  overlap.param_gather = object.boolean("param_gather");
  overlap.tp = object.boolean("tp");
  overlap.pp = object.boolean("pp");
  object.finish();
  return overlap;
}

Offload read_offload(const JsonValue& value) {
  ObjectReader object(value);
  Offload offload;
  offload.optimizer = object.number("optimizer", 0, 1).value_or(0);
  offload.parameters = object.number("parameters", 0, 1).value_or(0);
  offload.activations = object.number("activations", 0, 1).value_or(0);
  object.finish();
  return offload;
}

std::vector<std::int64_t> read_stage_layers(const JsonValue& list) {
  std::vector<std::int64_t> layers;
  for (const JsonValue& item : list.items()) {
    const auto count = item.integer();
    if (count && (*count < 0 || *count > kMaxDegree)) {
      item.fail(ErrorCode::kBadValue, fmt::format("{} is out of range", *count),
                fmt::format("0 to {}", kMaxDegree));
    }
    layers.push_back(count.value_or(0));
  }
  if (list.is_array() && layers.empty()) {
    list.fail(ErrorCode::kBadValue, "the list is empty", "one entry per model chunk");
  }
  return layers;
}

}  // namespace

LayoutInput read_layout(const JsonValue& value) {
  ObjectReader object(value);
  LayoutInput layout;
  layout.tp = object.integer("tp", 1, kMaxDegree);
  layout.cp = object.integer("cp", 1, kMaxDegree);
  layout.ep = object.integer("ep", 1, kMaxDegree);
  layout.etp = object.integer("etp", 1, kMaxDegree);
  layout.pp = object.integer("pp", 1, kMaxDegree);
  layout.dp = object.integer("dp", 1, kMaxDegree);
  layout.micro_batch = object.integer("micro_batch", 1, kMaxDegree);
  read_schedule(object, layout);
  layout.virtual_stages = object.integer("virtual_stages", 1, kMaxDegree);
  if (const auto zero = object.integer("zero", 0, 3)) layout.zero = static_cast<int>(*zero);
  read_shard_group(object, layout);
  layout.sequence_parallel = object.boolean("sequence_parallel");
  layout.recompute = read_recompute(object);
  layout.order = read_order(object);
  if (const auto overlap = object.value("overlap")) layout.overlap = read_overlap(*overlap);
  if (const auto offload = object.value("offload")) layout.offload = read_offload(*offload);
  if (const auto list = object.value("stage_layers"))
    layout.stage_layers = read_stage_layers(*list);
  layout.account_for_embedding = object.boolean("account_for_embedding").value_or(false);
  layout.account_for_loss = object.boolean("account_for_loss").value_or(false);
  object.finish();
  return layout;
}

}  // namespace stepcast
