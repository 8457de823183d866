// SPDX-License-Identifier: Apache-2.0
#include "cluster/irregular_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cluster/cluster.h"
#include "cluster/cluster_fields.h"
#include "cluster/local_cluster.h"
#include "cluster/nic_cable.h"
#include "core/json.h"
#include "core/limits.h"

namespace stepcast {
namespace {

const std::vector<std::string>& vertex_kinds() {
  static const std::vector<std::string> names = {"gpu",  "nvswitch", "pcie", "host", "nic",
                                                 "leaf", "spine",    "core", "wan"};
  return names;
}

bool in_fabric(VertexKind kind) {
  return kind == VertexKind::kLeaf || kind == VertexKind::kSpine || kind == VertexKind::kCore ||
         kind == VertexKind::kWan;
}

// The cable between two vertices; nothing when there is none.
std::optional<LinkKind> link_kind(VertexKind a, VertexKind b) {
  if (in_fabric(b)) std::swap(a, b);
  if (in_fabric(a)) {
    if (in_fabric(b)) return LinkKind::kFabric;
    if (b == VertexKind::kNic) return LinkKind::kNic;
    return std::nullopt;
  }
  if (a == VertexKind::kNic && b == VertexKind::kNic) return LinkKind::kNic;
  if (b == VertexKind::kNvSwitch) std::swap(a, b);
  if (a == VertexKind::kNvSwitch) {
    const bool nvlink = b == VertexKind::kGpu || b == VertexKind::kNvSwitch;
    return nvlink ? std::optional(LinkKind::kNvlink) : std::nullopt;
  }
  if (a == VertexKind::kGpu && b == VertexKind::kGpu) return LinkKind::kNvlink;
  if (a == VertexKind::kHost || b == VertexKind::kHost) return LinkKind::kHostBus;
  return LinkKind::kPcie;
}

struct NamedVertex {
  Vertex vertex;
  std::string name;
  GpuKind kind = {};
};

class Reader {
 public:
  Reader(ObjectReader& reader, const std::string& topologies_folder)
      : reader_(reader), folder_(topologies_folder) {}

  Cluster read() {
    ClusterSpec& spec = cluster_.spec;
    spec.name = kUnnamedGraph;
    spec.is_graph = true;
    read_identity_fields(reader_, folder_, spec);
    reader_.required("accelerator");
    if (spec.title.empty()) spec.title = spec.name;
    read_vertices();
    read_links();
    require_network();
    if (failed_) {
      for (const char* parts : {"fail", "degrade"}) reader_.ignore(parts);
    }
    if (!failed_) spec.failed = read_failed(reader_, spec, cluster_.topology);
    reader_.finish();
    // If no GPU is left, read_failed() has said so.
    if (failed_ || cluster_.topology.gpus().empty()) return std::move(cluster_);
    check_nodes();
    for (const Error& error : cluster_.topology.check()) {
      fail("links", error.code, error.message, error.hint);
    }
    if (!failed_) derive();
    return std::move(cluster_);
  }

 private:
  void fail(std::string_view key, ErrorCode code, std::string message, std::string hint = "") {
    failed_ = true;
    reader_.fail(key, code, std::move(message), std::move(hint));
  }

  void fail(const ObjectReader& item, ErrorCode code, std::string message, std::string hint = "") {
    failed_ = true;
    item.self().fail(code, std::move(message), std::move(hint));
  }

  void read_vertices() {
    const auto list = reader_.required("vertices");
    if (!list) {
      failed_ = true;
      return;
    }
    std::vector<NamedVertex> found;
    for (const JsonValue& item : list->items()) {
      ObjectReader reader(item);
      if (auto vertex = read_vertex(reader)) found.push_back(std::move(*vertex));
      reader.finish();
    }
    // Devices are numbered node by node, whatever the order in the file.
    std::stable_sort(found.begin(), found.end(), [](const NamedVertex& a, const NamedVertex& b) {
      return static_cast<std::uint32_t>(a.vertex.node) < static_cast<std::uint32_t>(b.vertex.node);
    });
    std::map<std::pair<std::int32_t, VertexKind>, std::int32_t> count;
    for (NamedVertex& named : found) {
      named.vertex.index = count[{named.vertex.node, named.vertex.kind}]++;
      const VertexId id = cluster_.topology.add_vertex(named.vertex, named.name);
      if (named.kind != GpuKind{}) cluster_.topology.set_kind(id, named.kind);
      ids_.emplace(named.name, id);
    }
    const std::size_t gpus = cluster_.topology.gpus().size();
    if (gpus == 0) fail("vertices", ErrorCode::kIllegal, "there is no GPU", "\"kind\": \"gpu\"");
    if (found.size() > kMostVertices) {
      fail("vertices", ErrorCode::kBadValue,
           fmt::format("{} vertices are more than this program takes one by one", found.size()),
           fmt::format("at most {}; \"base\" describes clusters of {} GPUs", kMostVertices,
                       kMaxGpus));
    }
  }

  std::optional<NamedVertex> read_vertex(ObjectReader& reader) {
    NamedVertex out;
    out.name = reader.required_text("name");
    const auto kind =
        reader.required("kind") ? reader.choice("kind", vertex_kinds()) : std::nullopt;
    const auto node = reader.integer("node", 0, kMaxGpus);
    if (out.name.empty() || !kind) {
      failed_ = true;
      return std::nullopt;
    }
    out.vertex.kind = static_cast<VertexKind>(*kind);
    if (!names_.emplace(out.name, 0).second) {
      fail(reader, ErrorCode::kIllegal, fmt::format("the name '{}' stands twice", out.name));
      return std::nullopt;
    }
    if (in_fabric(out.vertex.kind) && node) {
      fail(reader, ErrorCode::kIllegal,
           fmt::format("'{}' is a switch of the fabric and stands in no node", out.name),
           "leave out node");
    }
    const bool needs_node = !in_fabric(out.vertex.kind) && out.vertex.kind != VertexKind::kNvSwitch;
    if (needs_node && !node) {
      fail(reader, ErrorCode::kMissingKey, fmt::format("'{}' has no node", out.name),
           "\"node\": 0 for the first");
    }
    out.vertex.node = static_cast<std::int32_t>(node.value_or(-1));
    read_kind(reader, out);
    return out;
  }

  // Its accelerator, where that is not the cluster's, and its speed.
  void read_kind(ObjectReader& reader, NamedVertex& out) {
    const bool is_gpu = out.vertex.kind == VertexKind::kGpu;
    for (const char* key : {"accelerator", "speed"}) {
      if (is_gpu || !reader.has(key)) continue;
      fail(reader, ErrorCode::kIllegal, fmt::format("'{}' has {} and is no GPU", out.name, key),
           "only GPUs have it");
      reader.ignore(key);
    }
    if (!is_gpu) return;
    if (const auto speed = reader.number("speed", 0.01, 1)) out.kind.speed = *speed;
    const auto accelerator = read_accelerator_key(reader, folder_);
    if (!accelerator) return;
    ClusterSpec& spec = cluster_.spec;
    if (accelerator->is_cpu() != spec.accelerator.is_cpu()) {
      fail(reader, ErrorCode::kNotSupported, "a cluster of GPUs and processors as ranks");
    } else if (!can_work_together(*accelerator, spec.accelerator)) {
      fail(reader, ErrorCode::kIllegal, "GPUs of two vendors: NCCL and RCCL do not talk",
           "GPUs of one vendor");
    }
    out.kind.model = model_of(*accelerator, spec);
  }

  void read_links() {
    const auto list = reader_.value("links");
    if (!list) return;
    for (const JsonValue& item : list->items()) {
      ObjectReader reader(item);
      read_link(reader);
      reader.finish();
    }
  }

  void read_link(ObjectReader& reader) {
    Link link;
    const auto capacity = reader.required("capacity") ? reader.rate("capacity") : std::nullopt;
    link.capacity = capacity.value_or(BytesPerSecond());
    link.latency = reader.seconds("latency").value_or(Seconds());
    const bool cable = reader.has("between");
    if (cable) {
      const std::vector<JsonValue> ends = reader.value("between")->items();
      if (ends.size() == 2) {
        link.from = vertex_of(ends[0]);
        link.to = vertex_of(ends[1]);
      } else {
        fail(reader, ErrorCode::kBadValue, fmt::format("between has {} ends", ends.size()),
             "two names");
      }
    } else {
      const auto from = reader.required("from");
      const auto to = reader.required("to");
      if (from) link.from = vertex_of(*from);
      if (to) link.to = vertex_of(*to);
    }
    if (!link.from.valid() || !link.to.valid() || !capacity) {
      failed_ = true;
      return;
    }
    if (!place(reader, link)) return;
    if (cable) {
      cluster_.topology.add_cable(link);
    } else {
      cluster_.topology.add_link(link);
    }
  }

  // Finds the kind of the link; false when there is no such cable.
  bool place(const ObjectReader& reader, Link& link) {
    const Topology& graph = cluster_.topology;
    const Vertex& a = graph.vertices()[link.from.index()];
    const Vertex& b = graph.vertices()[link.to.index()];
    const auto kind = link_kind(a.kind, b.kind);
    const std::string ends =
        fmt::format("'{}' and '{}'", graph.name(link.from), graph.name(link.to));
    if (!kind) {
      fail(reader, ErrorCode::kIllegal,
           fmt::format("no cable joins {}: {} and {}", ends, name_of(a.kind), name_of(b.kind)),
           "the fabric is reached over a nic, an nvswitch over a gpu");
      return false;
    }
    link.kind = *kind;
    const bool in_nodes = a.node >= 0 && b.node >= 0;
    if ((*kind == LinkKind::kPcie || *kind == LinkKind::kHostBus) && a.node != b.node) {
      fail(reader, ErrorCode::kIllegal, fmt::format("{} stand in different nodes", ends),
           "PCIe stays inside a node");
      return false;
    }
    const std::int64_t span = cluster_.spec.nvlink_domain_nodes;
    if (*kind == LinkKind::kNvlink && in_nodes && a.node / span != b.node / span) {
      fail(reader, ErrorCode::kIllegal,
           fmt::format("{} are joined by NVLink and stand in different NVLink domains", ends),
           "give nvlink_domain_nodes");
      return false;
    }
    return true;
  }

  VertexId vertex_of(const JsonValue& value) {
    const auto name = value.text();
    if (!name) return {};
    if (const auto found = ids_.find(*name); found != ids_.end()) return found->second;
    failed_ = true;
    std::vector<std::string> known;
    // The first errors tell; a near word for each of a million would take hours.
    if (++missing_ <= kMostErrorsListed) {
      for (const auto& [other, unused] : ids_) known.push_back(other);
    }
    value.fail(ErrorCode::kNotFound, fmt::format("there is no vertex '{}'", *name),
               did_you_mean(*name, known));
    return {};
  }

  // Measured curves go by the kind of network.
  void require_network() {
    const std::vector<Vertex>& vertices = cluster_.topology.vertices();
    const bool nics = std::any_of(vertices.begin(), vertices.end(), [](const Vertex& vertex) {
      return vertex.kind == VertexKind::kNic;
    });
    if (nics) {
      reader_.required("network");
    } else if (!reader_.has("network")) {
      cluster_.spec.network = Network::kNone;
    }
  }

  void check_nodes() {
    const Topology& graph = cluster_.topology;
    std::int32_t expected = 0;
    for (const VertexId gpu : graph.gpus()) {
      const std::int32_t node = graph.vertices()[gpu.index()].node;
      if (node > expected) break;
      expected = node + 1;
    }
    for (const Vertex& vertex : graph.vertices()) {
      if (vertex.node < expected) continue;
      fail("vertices", ErrorCode::kIllegal, fmt::format("node {} has no GPU", expected),
           "nodes are numbered from 0 without gaps");
      return;
    }
  }

  bool is_cut_off(VertexId vertex) const {
    return cluster_.topology.vertices()[vertex.index()].kind == VertexKind::kNic &&
           !is_nic_with_cable(cluster_.topology, vertex);
  }

  // A link to a NIC without its cable leads nowhere.
  BytesPerSecond sum_out(VertexId vertex, LinkKind kind) const {
    BytesPerSecond sum;
    for (const LinkId id : cluster_.topology.out_links(vertex)) {
      const Link& link = cluster_.topology.links()[id.index()];
      if (link.kind == kind && !is_cut_off(link.to)) sum += link.capacity;
    }
    return sum;
  }

  // The fastest member stands for its kind. A group with slower ones goes at the pace of the
  // slowest of its own (cost/collective_group.h).
  BytesPerSecond fastest(VertexKind of, LinkKind kind) const {
    BytesPerSecond most;
    for (std::size_t i = 0; i < cluster_.topology.vertices().size(); ++i) {
      if (cluster_.topology.vertices()[i].kind != of) continue;
      most = std::max(most, sum_out(VertexId(i), kind));
    }
    return most;
  }

  void derive() {
    ClusterSpec& spec = cluster_.spec;
    const Topology& graph = cluster_.topology;
    std::map<std::pair<std::int32_t, VertexKind>, std::int64_t> count;
    bool switched = false;
    bool nvlink = false;
    for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
      const Vertex& vertex = graph.vertices()[i];
      if (!is_cut_off(VertexId(i))) ++count[{vertex.node, vertex.kind}];
      switched |= vertex.kind == VertexKind::kNvSwitch;
    }
    for (const Link& link : graph.links()) nvlink |= link.kind == LinkKind::kNvlink;
    spec.gpus_per_node = spec.nics_per_node = 0;
    for (const auto& [key, n] : count) {
      if (key.second == VertexKind::kGpu) spec.gpus_per_node = std::max(spec.gpus_per_node, n);
      if (key.second == VertexKind::kNic) spec.nics_per_node = std::max(spec.nics_per_node, n);
    }
    spec.gpus = static_cast<std::int64_t>(graph.gpus().size());
    share_memory(spec);
    spec.nodes = cluster_.node_of(DeviceId(graph.gpus().size() - 1)) + 1;
    spec.nodes_per_leaf_group = spec.nodes;
    spec.rail_optimised = false;
    spec.scale_up = switched ? ScaleUp::kNvSwitch : nvlink ? ScaleUp::kNvlinkMesh : ScaleUp::kPcie;
    spec.pcie_bandwidth = fastest(VertexKind::kGpu, LinkKind::kPcie);
    spec.scale_up_bandwidth =
        nvlink ? fastest(VertexKind::kGpu, LinkKind::kNvlink) : spec.pcie_bandwidth;
    spec.nic_bandwidth = fastest(VertexKind::kNic, LinkKind::kNic);
    find_sites();
    for (std::size_t i = 1; i < graph.gpus().size(); ++i) {
      const bool inside = cluster_.domain_of(DeviceId(i)) == cluster_.domain_of(DeviceId(0));
      const Seconds latency = graph.latency(DeviceId(0), DeviceId(i));
      const bool here = cluster_.site_of(DeviceId(i)) == 0;
      Seconds& longest = inside ? spec.scale_up_latency
                         : here ? spec.network_latency
                                : spec.wan_latency;
      longest = std::max(longest, latency);
    }
    spec.wan_latency = std::max(spec.wan_latency - spec.network_latency, Seconds());
  }

  // The parts that only the wide area joins are the sites.
  void find_sites() {
    const Topology& graph = cluster_.topology;
    const std::vector<Vertex>& vertices = graph.vertices();
    const auto is_wan = [](const Vertex& vertex) { return vertex.kind == VertexKind::kWan; };
    if (std::ranges::none_of(vertices, is_wan)) return;
    std::vector<bool> seen(vertices.size(), false);
    std::vector<std::set<std::int32_t>> sites;  // the nodes of each
    for (const VertexId gpu : graph.gpus()) {
      if (seen[gpu.index()]) continue;
      seen[gpu.index()] = true;
      sites.emplace_back();
      for (std::vector<VertexId> open = {gpu}; !open.empty();) {
        const VertexId at = open.back();
        open.pop_back();
        if (vertices[at.index()].node >= 0) sites.back().insert(vertices[at.index()].node);
        for (const LinkId id : graph.out_links(at)) {
          const VertexId to = graph.links()[id.index()].to;
          const bool leaves = is_wan(vertices[to.index()]);
          if (leaves) cluster_.spec.wan_bandwidth = graph.links()[id.index()].capacity;
          if (leaves || seen[to.index()]) continue;
          seen[to.index()] = true;
          open.push_back(to);
        }
      }
    }
    cluster_.spec.sites = static_cast<std::int64_t>(sites.size());
    std::int32_t next = 0;
    for (const std::set<std::int32_t>& nodes : sites) {
      const bool alike = nodes.size() == sites.front().size() && *nodes.begin() == next &&
                         *nodes.rbegin() == next + static_cast<std::int32_t>(nodes.size()) - 1;
      if (!alike) {
        cluster_.spec.sites = 1;
        return fail("vertices", ErrorCode::kNotSupported, "sites that are not alike",
                    "as many nodes in each, those of a site numbered together");
      }
      next += static_cast<std::int32_t>(nodes.size());
    }
  }

  ObjectReader& reader_;
  const std::string& folder_;
  Cluster cluster_;
  std::map<std::string, int> names_;
  std::map<std::string, VertexId> ids_;
  std::size_t missing_ = 0;  // names that no vertex has
  bool failed_ = false;
};

}  // namespace

Cluster read_irregular_cluster(ObjectReader& reader, const std::string& topologies_folder) {
  return Reader(reader, topologies_folder).read();
}

}  // namespace stepcast
