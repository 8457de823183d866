// SPDX-License-Identifier: Apache-2.0
// Integer ids that cannot be mixed up: Id<struct RankTag> is not Id<struct LinkTag>.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stepcast {

template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  explicit constexpr Id(std::int32_t v) : value(v) {}
  explicit constexpr Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr auto operator<=>(const Id&) const = default;
  constexpr bool valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

using RankId = Id<struct RankTag>;      // a process, one per GPU, in the framework's numbering
using DeviceId = Id<struct DeviceTag>;  // a GPU of the cluster, node by node
using LinkId = Id<struct LinkTag>;      // one direction of one link of the topology
using VertexId = Id<struct VertexTag>;  // a device, switch or NIC of the topology

}  // namespace stepcast

template <class Tag>
struct std::hash<stepcast::Id<Tag>> {
  std::size_t operator()(stepcast::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
