// SPDX-License-Identifier: Apache-2.0
#include "layout/axis_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/json.h"
#include "layout/layout.h"
#include "layout/pipeline.h"
#include "schedule/schedule.h"

namespace stepcast {
namespace {

std::int64_t expert_data(const Layout& l) { return l.tp * l.cp * l.dp / (l.etp * l.ep); }

constexpr std::array<AxisRow, kAxisCount> kAxes{{
    {Axis::kTp, "tp", GridPart::kDense, TrafficKind::kTensor, "tp",
     [](const Layout& l) { return l.tp; }},
    {Axis::kCp, "cp", GridPart::kDense, TrafficKind::kContext, "cp",
     [](const Layout& l) { return l.cp; }},
    {Axis::kDp, "dp", GridPart::kDense, TrafficKind::kData, "dp",
     [](const Layout& l) { return l.dp; }},
    {Axis::kPp, "pp", GridPart::kBoth, TrafficKind::kPipeline, "pp",
     [](const Layout& l) { return l.pp; }},
    {Axis::kEtp, "etp", GridPart::kExpert, TrafficKind::kTensor, "tp",
     [](const Layout& l) { return l.etp; }},
    {Axis::kEp, "ep", GridPart::kExpert, TrafficKind::kExpert, "ep",
     [](const Layout& l) { return l.ep; }},
    {Axis::kEdp, "edp", GridPart::kExpert, TrafficKind::kData, "dp", expert_data},
}};

static_assert(kAxes.back().extent != nullptr, "every axis has a row");

// Dense parameters are the same across dp and cp alike: what is called "dp" spans both.
constexpr std::array<NamedGroup, 16> kNamedGroups{{
    {"tp", AxisGroup::kTensor},
    {"cp", AxisGroup::kContext},
    {"cp-inner", AxisGroup::kContextInner},
    {"cp-outer", AxisGroup::kContextOuter},
    {"replicas", AxisGroup::kReplicas},
    {"dp", AxisGroup::kData},
    {"dp-shard", AxisGroup::kDataShard},
    {"dp-copies", AxisGroup::kDataCopies},
    {"pp", AxisGroup::kPipeline},
    {"embedding", AxisGroup::kEmbedding},
    {"model", AxisGroup::kModel},
    {"world", AxisGroup::kWorld},
    {"etp", AxisGroup::kExpertTensor},
    {"ep", AxisGroup::kExpert},
    {"etp-ep", AxisGroup::kTensorExpert},
    {"edp", AxisGroup::kExpertData},
}};

}  // namespace

std::span<const AxisRow> all_axes() { return kAxes; }
std::span<const NamedGroup> named_groups() { return kNamedGroups; }

std::string name_of(AxisGroup group) {
  const auto named = std::ranges::find(kNamedGroups, group, &NamedGroup::group);
  if (named != kNamedGroups.end()) return named->name;
  std::string out;
  for (const AxisRow& row : kAxes) {
    if (group.spans(row.axis)) out += (out.empty() ? "" : "-") + std::string(row.name);
  }
  return out.empty() ? "self" : out;
}

std::optional<AxisGroup> group_named(std::string_view name) {
  const auto named = std::ranges::find(kNamedGroups, name, &NamedGroup::name);
  if (named != kNamedGroups.end()) return named->group;
  AxisGroup out;
  for (std::size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
    end = name.find('-', begin);
    const auto axis = std::ranges::find(kAxes, name.substr(begin, end - begin), &AxisRow::name);
    if (axis == kAxes.end()) return std::nullopt;
    out = out.with(axis->axis);
  }
  return out;
}

std::optional<TrafficKind> traffic_of(AxisGroup group) {
  const bool is_pipeline = group == AxisGroup::kPipeline || group == AxisGroup::kEmbedding;
  if (group.crosses_stages() && !is_pipeline) return std::nullopt;
  std::optional<TrafficKind> out;
  for (const AxisRow& row : kAxes) {
    if (group.spans(row.axis)) out = std::max(out, std::optional(row.traffic));
  }
  return out;
}

std::int64_t inner_ranks(AxisGroup group, const Layout& layout) {
  const std::int64_t all = size_of(group.whole(), layout);
  const AxisGroup whole = group.whole();
  if (whole == AxisGroup::kContext) return layout.cp_exchange;
  const bool is_sharded = whole == AxisGroup::kData || whole == AxisGroup::kExpertData;
  if (!is_sharded || layout.shard_group == 0) return all;
  if (whole == AxisGroup::kData) return std::gcd(layout.shard_group, all);
  // Experts have as many copies as dense parameters (Megatron: parallel_state.py,
  // num_distributed_optimizer_instances; torchtitan: parallel_dims.py, efsdp beside dp_replicate),
  // or none where expert parallel ranks reach over them.
  const std::int64_t data = size_of(AxisGroup::kData, layout);
  const std::int64_t copies = data / std::gcd(layout.shard_group, data);
  return all % copies == 0 ? all / copies : all;
}

bool joins_mirrored_stages(AxisGroup group, const Layout& layout) {
  const AxisGroup whole = group.whole();
  return feeds_both_ends(layout) && (whole == AxisGroup::kData || whole == AxisGroup::kExpertData);
}

std::int64_t size_of(AxisGroup group, const Layout& layout) {
  if (group.is_inner()) return inner_ranks(group, layout);
  if (group.is_outer()) return size_of(group.whole(), layout) / inner_ranks(group, layout);
  if (group.ends_only()) return std::min<std::int64_t>(2, layout.pp);
  std::int64_t size = joins_mirrored_stages(group, layout) ? 2 : 1;
  for (const AxisRow& row : kAxes) size *= group.spans(row.axis) ? row.extent(layout) : 1;
  return size;
}

bool read_json(const JsonValue& value, AxisGroup& out) {
  const auto name = value.text();
  const auto group = name ? group_named(*name) : std::nullopt;
  if (group) {
    out = *group;
  } else if (name) {
    std::vector<std::string> names;
    for (const NamedGroup& one : named_groups()) names.emplace_back(one.name);
    value.fail(ErrorCode::kBadValue, fmt::format("'{}' is not a group of ranks", *name),
               fmt::format("axes of the layout, as tp-cp, or one of {}", one_of(names)));
  }
  return group.has_value();
}
Json written_json(AxisGroup group) { return name_of(group); }

}  // namespace stepcast
