// SPDX-License-Identifier: Apache-2.0
// Which ranks communicate: a communicator by the axes of the rank grid that it spans. The value
// says "tp" or "dp x cp"; which ranks that makes in a layout is told by layout/rank_grid.h.
//
// The dense grid is tp x cp x dp x pp. Inside a stage experts regroup the same ranks as
// etp x ep x edp, in the same order of axes with cp dropped (Megatron: parallel_state.py,
// RankGenerator). A group spans axes of one of the two grids; pp belongs to both.
//
// To name a group, add a line to kNamedGroups in axis_group.cpp. To add an axis, add one to kAxes
// there; docs/extending.md ("A communicator") lists what an axis needs beside it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/json_fwd.h"

namespace stepcast {

struct Layout;

// The numbers order groups, and so every table by group: tp first, groups across stages later.
enum class Axis : std::uint8_t { kTp, kCp, kDp, kPp, kEtp, kEp, kEdp };
inline constexpr std::size_t kAxisCount = 7;

// Times of traffic are told apart by these.
enum class TrafficKind : std::uint8_t { kTensor, kContext, kExpert, kPipeline, kData };
inline constexpr std::size_t kTrafficKinds = 5;

enum class GridPart : std::uint8_t { kDense, kExpert, kBoth };

struct AxisRow {
  Axis axis;
  const char* name;
  GridPart part;
  TrafficKind traffic;
  const char* in_order;  // the word of `layout.order` that says where the axis stands
  std::int64_t (*extent)(const Layout&);
};
std::span<const AxisRow> all_axes();  // by Axis
inline const AxisRow& row_of(Axis axis) { return all_axes()[static_cast<std::size_t>(axis)]; }

// visit(std::string_view): the words of a `layout.order`, the fastest first.
template <class Visit>
void for_each_word(std::string_view order, Visit&& visit) {
  for (std::size_t begin = 0; begin <= order.size();) {
    const std::size_t end = std::min(order.find('-', begin), order.size());
    visit(order.substr(begin, end - begin));
    begin = end + 1;
  }
}

class AxisGroup {
 public:
  constexpr AxisGroup() = default;  // spans nothing: each rank for itself
  constexpr AxisGroup(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) axes_ |= bit(axis);
  }

  constexpr AxisGroup with(Axis axis) const {
    AxisGroup out = *this;
    out.axes_ |= bit(axis);
    return out;
  }
  constexpr bool spans(Axis axis) const { return (axes_ & bit(axis)) != 0; }
  // No other axes than those.
  constexpr bool is_within(const AxisGroup& other) const { return (axes_ & ~other.axes_) == 0; }
  // A group may be cut into parts of neighbours, as large as Layout says (inner_ranks()). The inner
  // one is such a part; the outer one has the ranks that stand at one place of theirs.
  constexpr AxisGroup inner() const { return part_of(Part::kInner); }
  constexpr AxisGroup outer() const { return part_of(Part::kOuter); }
  constexpr bool is_inner() const { return part_ == Part::kInner; }
  constexpr bool is_outer() const { return part_ == Part::kOuter; }
  constexpr AxisGroup whole() const { return part_of(Part::kWhole); }
  // Only the first and the last stage of the pipeline take part.
  constexpr bool ends_only() const { return ends_only_; }
  constexpr bool crosses_stages() const { return spans(Axis::kPp); }
  // Ranks of every stage meet in one group.
  constexpr bool joins_all_stages() const { return crosses_stages() && !ends_only_; }

  constexpr auto operator<=>(const AxisGroup&) const = default;
  constexpr std::size_t hash() const {
    return static_cast<std::size_t>(axes_) << 3 | static_cast<std::size_t>(part_) << 1 |
           (ends_only_ ? 1U : 0U);
  }

  static const AxisGroup kTensor;
  static const AxisGroup kContext;
  static const AxisGroup kContextInner;  // the ranks that exchange heads
  static const AxisGroup kContextOuter;  // and those that keys and values go around
  static const AxisGroup kDataShard;     // the ranks that share one copy of the states
  static const AxisGroup kDataCopies;    // and those that hold the same part of it
  // The ranks that hold the same (shard of the) dense parameters. Where a model stands on the
  // stages twice, those of both copies.
  static const AxisGroup kData;
  static const AxisGroup kReplicas;  // dp without cp: the ranks that read different text
  static const AxisGroup kPipeline;
  static const AxisGroup kEmbedding;  // first and last stage of one pipeline
  static const AxisGroup kModel;      // the ranks that share one replica (gradient norm)
  static const AxisGroup kWorld;
  static const AxisGroup kExpertTensor;
  static const AxisGroup kExpert;
  static const AxisGroup kExpertData;    // the ranks that hold the same experts, in both copies
  static const AxisGroup kTensorExpert;  // etp x ep: the ranks that tokens are dispatched among

 private:
  static constexpr std::uint32_t bit(Axis axis) { return 1U << static_cast<unsigned>(axis); }
  static constexpr AxisGroup ends_of(AxisGroup group) {
    group.ends_only_ = true;
    return group;
  }

  enum class Part : std::uint8_t { kWhole, kInner, kOuter };
  constexpr AxisGroup part_of(Part part) const {
    AxisGroup out = *this;
    out.part_ = part;
    return out;
  }

  std::uint32_t axes_ = 0;
  bool ends_only_ = false;
  Part part_ = Part::kWhole;
};

inline constexpr AxisGroup AxisGroup::kTensor{Axis::kTp};
inline constexpr AxisGroup AxisGroup::kContext{Axis::kCp};
inline constexpr AxisGroup AxisGroup::kData{Axis::kDp, Axis::kCp};
inline constexpr AxisGroup AxisGroup::kContextInner = AxisGroup::kContext.inner();
inline constexpr AxisGroup AxisGroup::kContextOuter = AxisGroup::kContext.outer();
inline constexpr AxisGroup AxisGroup::kDataShard = AxisGroup::kData.inner();
inline constexpr AxisGroup AxisGroup::kDataCopies = AxisGroup::kData.outer();
inline constexpr AxisGroup AxisGroup::kReplicas{Axis::kDp};
inline constexpr AxisGroup AxisGroup::kPipeline{Axis::kPp};
inline constexpr AxisGroup AxisGroup::kEmbedding = ends_of(AxisGroup{Axis::kPp});
inline constexpr AxisGroup AxisGroup::kModel{Axis::kTp, Axis::kPp};
inline constexpr AxisGroup AxisGroup::kWorld{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
inline constexpr AxisGroup AxisGroup::kExpertTensor{Axis::kEtp};
inline constexpr AxisGroup AxisGroup::kExpert{Axis::kEp};
inline constexpr AxisGroup AxisGroup::kExpertData{Axis::kEdp};
inline constexpr AxisGroup AxisGroup::kTensorExpert{Axis::kEtp, Axis::kEp};

// The rows are in ascending order.
struct NamedGroup {
  const char* name;
  AxisGroup group;
};
std::span<const NamedGroup> named_groups();

// "tp", "dp" (which is dp x cp), "world"; of a group without a name its axes: "tp-cp".
std::string name_of(AxisGroup group);
std::optional<AxisGroup> group_named(std::string_view name);  // nothing: no such name, no such axis
bool read_json(const JsonValue& value, AxisGroup& out);       // by its name
Json written_json(AxisGroup group);

// Tells whose traffic a collective of this group is. What spans several axes of a stage counts for
// the one that reaches furthest in the usual order of ranks; what joins stages and something else,
// or spans nothing, is nobody's.
std::optional<TrafficKind> traffic_of(AxisGroup group);

// Neighbours in an inner part of a group: those that shard_group says of a group that shards
// states, those that exchange heads of the context group. All of any other.
std::int64_t inner_ranks(AxisGroup group, const Layout& layout);

// Whether a group of the layout joins the two stages that hold a mirrored chunk of the model.
bool joins_mirrored_stages(AxisGroup group, const Layout& layout);

// Ranks of one group. What `layout` does not divide evenly is refused by layout/legality.cpp.
std::int64_t size_of(AxisGroup group, const Layout& layout);

}  // namespace stepcast

template <>
struct std::hash<stepcast::AxisGroup> {
  std::size_t operator()(const stepcast::AxisGroup& group) const noexcept { return group.hash(); }
};
