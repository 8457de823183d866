// SPDX-License-Identifier: Apache-2.0
#include "cluster/topology.h"

#include <fmt/format.h>

#include <utility>

#include "cluster/route_table.h"
#include "core/assert.h"

namespace stepcast {

const char* name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::kGpu:
      return "gpu";
    case VertexKind::kNvSwitch:
      return "nvswitch";
    case VertexKind::kPcieSwitch:
      return "pcie";
    case VertexKind::kHost:
      return "host";
    case VertexKind::kNic:
      return "nic";
    case VertexKind::kLeaf:
      return "leaf";
    case VertexKind::kSpine:
      return "spine";
    case VertexKind::kCore:
      return "core";
    case VertexKind::kWan:
      return "wan";
  }
  return "";
}

const char* name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return "nvlink";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kHostBus:
      return "host";
    case LinkKind::kNic:
      return "nic";
    case LinkKind::kFabric:
      return "fabric";
  }
  return "";
}

Topology::Topology() : routes_(std::make_shared<RouteTable>()) {}

Topology Topology::with_devices(const std::vector<DeviceId>& devices) const {
  Topology out = *this;
  out.routes_ = std::make_shared<RouteTable>();
  out.gpus_.clear();
  for (const DeviceId device : devices) out.gpus_.push_back(gpus_[device.index()]);
  return out;
}

VertexId Topology::add_vertex(Vertex vertex, std::string name) {
  const VertexId id(vertices_.size());
  if (vertex.kind == VertexKind::kGpu) gpus_.push_back(id);
  if (!name.empty()) names_.emplace(id.value, std::move(name));
  vertices_.push_back(vertex);
  first_out_.emplace_back();
  first_in_.emplace_back();
  out_degree_.push_back(0);
  return id;
}

LinkId Topology::add_link(const Link& link) {
  STEPCAST_ASSERT(link.from.valid() && link.from.index() < vertices_.size(), "unknown vertex");
  STEPCAST_ASSERT(link.to.valid() && link.to.index() < vertices_.size(), "unknown vertex");
  const LinkId id(links_.size());
  if (routes_->is_used()) routes_ = std::make_shared<RouteTable>();
  const std::int32_t from = vertices_[link.from.index()].node;
  const std::int32_t to = vertices_[link.to.index()].node;
  joins_nodes_ = joins_nodes_ || (from >= 0 && to >= 0 && from != to);
  links_.push_back(link);
  ++out_degree_[link.from.index()];
  next_out_.push_back(std::exchange(first_out_[link.from.index()], id));
  next_in_.push_back(std::exchange(first_in_[link.to.index()], id));
  return id;
}

void Topology::add_cable(const Link& link) {
  add_link(link);
  Link back = link;
  std::swap(back.from, back.to);
  add_link(back);
}

void Topology::set_kind(VertexId gpu, const GpuKind& kind) {
  STEPCAST_ASSERT(vertices_[gpu.index()].kind == VertexKind::kGpu, "only GPUs differ");
  if (kind == GpuKind{}) {
    kinds_.erase(gpu.value);
  } else {
    kinds_[gpu.value] = kind;
  }
}

void Topology::set_device_order(std::vector<VertexId> gpus) {
  STEPCAST_ASSERT(gpus.size() == gpus_.size(), "all GPUs have a place");
  if (routes_->is_used()) routes_ = std::make_shared<RouteTable>();
  gpus_ = std::move(gpus);
}

GpuKind Topology::kind(VertexId gpu) const {
  const auto found = kinds_.find(gpu.value);
  return found == kinds_.end() ? GpuKind{} : found->second;
}

void Topology::reserve(std::size_t vertices, std::size_t links) {
  vertices_.reserve(vertices);
  first_out_.reserve(vertices);
  first_in_.reserve(vertices);
  out_degree_.reserve(vertices);
  links_.reserve(links);
  next_out_.reserve(links);
  next_in_.reserve(links);
}

std::string Topology::name(VertexId vertex) const {
  if (const auto given = names_.find(vertex.value); given != names_.end()) return given->second;
  const Vertex& v = vertices_[vertex.index()];
  const std::string own = fmt::format("{}{}", name_of(v.kind), v.index);
  if (v.plane >= 0) return fmt::format("plane{}/{}", v.plane, own);
  return v.node < 0 ? own : fmt::format("node{}/{}", v.node, own);
}

std::string Topology::given_name(VertexId vertex) const {
  const auto given = names_.find(vertex.value);
  return given == names_.end() ? "" : given->second;
}

std::string Topology::name(LinkId link) const {
  const Link& l = links_[link.index()];
  return name(l.from) + " -> " + name(l.to);
}

}  // namespace stepcast
