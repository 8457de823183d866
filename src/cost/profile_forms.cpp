// SPDX-License-Identifier: Apache-2.0
#include "cost/profile_forms.h"

#include <fmt/format.h>

#include <cmath>

#include "core/enum_names.h"
#include "core/row_types.h"
#include "cost/profile.h"
#include "cost/profile_curves.h"
#include "operation/memory_bound.h"

namespace stepcast {
namespace {

// By names it leaves out factors of 1.
Json written_factors(const void* value, const RowType& type, RowNames names) {
  Json out = names ? Json::object() : Json::array();
  for (std::size_t i = 0; i < type.size; ++i) {
    const double factor = type.element->number(type.place(value, i));
    if (names == nullptr) {
      out.push_back(rounded(factor));
    } else if (factor != 1) {
      out[names()[i]] = rounded(factor);
    }
  }
  return out;
}

Json written_number(double value, RowUnit unit) {
  if (unit == RowUnit::kSeconds) return microseconds(value);
  if (unit == RowUnit::kBytes) return fmt::format("{:.4g} B", value);
  return rounded(value);
}

}  // namespace

double rounded(double value) {
  if (value == 0) return 0;
  const double digits = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * digits) / digits;
}
std::string microseconds(double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); }

Json write_form(const Rows& rows, const void* form) {
  Json out = Json::object();
  for (const Row& row : rows) {
    const void* value = row.of(form);
    const RowType& type = *row.type;
    const bool is_usual = row.says_more && type.equal(value, row.of(rows.usual()));
    if (!row.is_written || is_usual) continue;
    out[row.key] = type.kind == RowKind::kArray
                       ? written_factors(value, type, row.range.names)
                       : written_number(type.number(value), row.range.unit);
  }
  return out;
}

Rows GemmFit::fields() {
  using F = GemmFit;
  static constexpr Row all[] = {
      row<&F::efficiency>("efficiency").within(kLeastFactor, 10),
      row<&F::tile_m>("tile_m").within(2, 4096),
      row<&F::tile_n>("tile_n").within(2, 4096),
      row<&F::tile_half>("tile_half").within(0, kMostNumber),
      row<&F::k_half>("k_half").within(0, kMostNumber),
      row<&F::wave_weight>("wave_weight").within(0, 1),
      row<&F::memory_fraction>("memory_fraction").within(kLeastFactor, 10),
      row<&F::misaligned_factor>("misaligned_factor").within(1, 100),
      row<&F::sustained_factor>("sustained_factor").within(1, 100),
      row<&F::sustained_s>("sustained").with_unit(RowUnit::kSeconds),
      row<&F::accumulate_exposed>("accumulate_exposed").within(0, 1),
      row<&F::overhead_s>("overhead").with_unit(RowUnit::kSeconds),
      row<&F::role_factor>("role_factor").within(0, kMostNumber).positive(),
      row<&F::back_to_back>("back_to_back").within(1, 100).unless_usual(),
      row<&F::back_to_back_alone>("back_to_back_alone").within(1, 100).unless_usual()};
  return rows_of<F>(all);
}

Rows GroupedFit::fields() {
  using F = GroupedFit;
  static constexpr Row all[] = {
      row<&F::rate>("rate").within(kLeastFactor, 10),
      row<&F::bandwidth>("bandwidth").within(kLeastFactor, 10),
      row<&F::role_factor>("role_factor").within(0, kMostNumber).positive().unless_usual(),
      row<&F::group_s>("group").with_unit(RowUnit::kSeconds).unless_usual(),
      row<&F::rate_fp8>("rate_fp8").within(0, 10).unless_usual(),
      row<&F::rate_fp4>("rate_fp4").within(0, 10).unless_usual()};
  return rows_of<F>(all);
}

Rows AttentionFit::fields() {
  using F = AttentionFit;
  static constexpr Row all[] = {
      row<&F::forward_efficiency>("forward_efficiency").within(kLeastFactor, 10),
      row<&F::backward_efficiency>("backward_efficiency").within(kLeastFactor, 10),
      row<&F::causal_efficiency>("causal_efficiency").within(kLeastFactor, 10),
      row<&F::causal_half_length>("causal_half_length").within(0, kMostNumber),
      row<&F::length_half>("length_half").within(0, kMostNumber),
      row<&F::backward_length_half>("backward_length_half").within(0, kMostNumber),
      row<&F::blocks_half>("blocks_half").within(0, kMostNumber),
      row<&F::backward_blocks_half>("backward_blocks_half").within(0, kMostNumber),
      row<&F::head_dim_factor>("head_dim_factor").within(0, kMostNumber).positive(),
      row<&F::overhead_s>("overhead").with_unit(RowUnit::kSeconds),
      row<&F::back_to_back>("back_to_back").within(1, 100).unless_usual()};
  return rows_of<F>(all);
}

Rows MemoryFit::fields() {
  using F = MemoryFit;
  static constexpr Row all[] = {row<&F::fraction>("fraction").within(kLeastFactor, 10),
                                row<&F::half_bytes>("half").with_unit(RowUnit::kBytes),
                                row<&F::overhead_s>("overhead").with_unit(RowUnit::kSeconds),
                                row<&F::kind_factor>("kind_factor")
                                    .within(kLeastFactor, 100)
                                    .named(enum_names<MemoryBoundKind>),
                                row<&F::backward_factor>("backward_factor")
                                    .within(kLeastFactor, 100)
                                    .named(enum_names<MemoryBoundKind>)
                                    .unless_usual(),
                                row<&F::step_factor>("step_factor")
                                    .within(kLeastFactor, 100)
                                    .named(enum_names<MemoryBoundKind>)
                                    .unless_usual()};
  return rows_of<F>(all);
}

Rows HostFit::fields() {
  using F = HostFit;
  static constexpr Row all[] = {
      row<&F::launch_s>("launch").with_unit(RowUnit::kSeconds),
      row<&F::collective_s>("collective").with_unit(RowUnit::kSeconds),
      row<&F::graph_launch_s>("graph_launch").with_unit(RowUnit::kSeconds),
      row<&F::backward_factor>("backward_factor").within(0, 100),
      row<&F::step_s>("step").with_unit(RowUnit::kSeconds),
      row<&F::operator_s>("operator").with_unit(RowUnit::kSeconds).only_read(),
      row<&F::call_s>("call").with_unit(RowUnit::kSeconds).only_read(),
      row<&F::copy_s>("copy").with_unit(RowUnit::kSeconds).only_read(),
      row<&F::micro_batch_s>("micro_batch").with_unit(RowUnit::kSeconds).only_read()};
  return rows_of<F>(all);
}

}  // namespace stepcast
