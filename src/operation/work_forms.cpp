// SPDX-License-Identifier: Apache-2.0
#include "operation/work_forms.h"

#include <array>
#include <utility>

namespace stepcast {
namespace {

template <class Work>
constexpr WorkForm form() {
  return {Work::kFamily, Work::fields,
          [](Operation::Work& work) -> void* { return &work.emplace<Work>(Work{}); }};
}

template <std::size_t... Index>
constexpr std::array<WorkForm, sizeof...(Index)> forms(std::index_sequence<Index...>) {
  return {form<std::variant_alternative_t<Index, Operation::Work>>()...};
}

}  // namespace

std::span<const WorkForm> work_forms() {
  static constexpr auto all =
      forms(std::make_index_sequence<std::variant_size_v<Operation::Work>>());
  return all;
}

const void* struct_of(const Operation::Work& work) {
  return std::visit([](const auto& one) -> const void* { return &one; }, work);
}

Rows Alias::fields() { return {}; }

}  // namespace stepcast
