// SPDX-License-Identifier: Apache-2.0
#include "cluster/failed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/assert.h"
#include "core/unit_text.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostNear = 20'000;  // names among which a near one is looked for

std::optional<VertexId> vertex_named(const Topology& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    if (graph.name(VertexId(i)) == name) return VertexId(i);
  }
  return std::nullopt;
}

struct Part {
  VertexId one, other;      // `other` is not valid where the part is a vertex
  std::int32_t node = -1;   // where it is a node, and no vertex
  std::int32_t plane = -1;  // where it is all switches of a plane

  bool is_node() const { return node >= 0; }
  bool is_plane() const { return plane >= 0; }
  bool is_gpu(const Topology& graph) const {
    return !is_node() && !is_plane() && !other.valid() &&
           graph.vertices()[one.index()].kind == VertexKind::kGpu;
  }
  // All of it is taken out, or it computes more slowly.
  bool computes(const Topology& graph) const { return is_node() || is_gpu(graph); }
  bool holds(const Topology& graph, VertexId vertex) const {
    return is_node() ? graph.vertices()[vertex.index()].node == node : vertex == one;
  }
};

// The number after `kind`, as in "node3".
std::optional<std::int32_t> number_after(std::string_view kind, std::string_view name) {
  std::int32_t number = 0;
  if (!name.starts_with(kind)) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kind.size(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < 0) return std::nullopt;
  return number;
}

std::optional<std::int32_t> node_named(const Topology& graph, std::string_view name) {
  const auto node = number_after("node", name);
  const auto stands_there = [&](const Vertex& vertex) { return vertex.node == node; };
  return node && std::ranges::any_of(graph.vertices(), stands_there) ? node : std::nullopt;
}

// A graph that was written out has the planes in the names of its switches.
bool is_in_plane(const Topology& graph, VertexId vertex, std::int32_t plane) {
  const Vertex& own = graph.vertices()[vertex.index()];
  if (own.node >= 0) return false;
  return own.plane == plane || graph.given_name(vertex).starts_with(fmt::format("plane{}/", plane));
}

std::optional<std::int32_t> plane_named(const Topology& graph, std::string_view name) {
  const auto plane = number_after("plane", name);
  if (!plane) return std::nullopt;
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    if (is_in_plane(graph, VertexId(i), *plane)) return plane;
  }
  return std::nullopt;
}

bool is_cable(const Topology& graph, VertexId one, VertexId other) {
  const LinkRange out = graph.out_links(one);
  return std::any_of(out.begin(), out.end(),
                     [&](LinkId id) { return graph.links()[id.index()].to == other; });
}

// Names hold dashes in files of one's own, so every dash may be the one between two ends.
std::optional<Part> find_part(const Topology& graph, std::string_view text) {
  if (const auto vertex = vertex_named(graph, text)) return Part{*vertex, {}, -1, -1};
  for (std::size_t dash = text.find('-'); dash != std::string_view::npos;
       dash = text.find('-', dash + 1)) {
    const auto one = vertex_named(graph, text.substr(0, dash));
    const auto other = vertex_named(graph, text.substr(dash + 1));
    if (one && other && is_cable(graph, *one, *other)) return Part{*one, *other, -1, -1};
  }
  if (const auto node = node_named(graph, text)) return Part{{}, {}, *node, -1};
  if (const auto plane = plane_named(graph, text)) return Part{{}, {}, -1, *plane};
  return std::nullopt;
}

// The cables that a failure of a vertex cuts: a NIC loses its cable and stays on PCIe.
bool concerns(const Topology& graph, const Part& part, const Link& link) {
  if (part.computes(graph)) return false;
  if (part.is_plane()) {
    return is_in_plane(graph, link.from, part.plane) || is_in_plane(graph, link.to, part.plane);
  }
  if (part.other.valid()) {
    return (link.from == part.one && link.to == part.other) ||
           (link.from == part.other && link.to == part.one);
  }
  if (link.from != part.one && link.to != part.one) return false;
  const VertexKind kind = graph.vertices()[part.one.index()].kind;
  return kind != VertexKind::kNic || link.kind == LinkKind::kNic;
}

BytesPerSecond widest(const Topology& graph, const Part& part) {
  BytesPerSecond out;
  for (const Link& link : graph.links()) {
    if (concerns(graph, part, link)) out = std::max(out, link.capacity);
  }
  return out;
}

Error no_part(std::string_view text, const Topology& graph) {
  std::vector<std::string> names;
  if (graph.vertices().size() <= kMostNear) {
    for (std::size_t i = 0; i < graph.vertices().size(); ++i)
      names.push_back(graph.name(VertexId(i)));
  }
  const std::string near = did_you_mean(text, names);
  return {ErrorCode::kNotFound, fmt::format("the cluster has no part '{}'", text), "", "",
          near.empty()
              ? "node0/nic0, node0/gpu0, node0 or two ends such as leaf0-spine0; topology show "
                "--format json lists them"
              : near};
}

std::optional<double> share_of(std::string_view text, BytesPerSecond whole) {
  if (text.ends_with('%')) {
    double percent = 0;
    const char* end = text.data() + text.size() - 1;
    const auto read = std::from_chars(text.data(), end, percent);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return percent / 100;
  }
  const auto rate = parse_rate(text);
  if (!rate || !(whole.value() > 0)) return std::nullopt;
  return *rate / whole;
}

}  // namespace

Result<FailedPart> parse_failed_part(std::string_view text, const Topology& whole) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto part = find_part(whole, name);
  if (!part) return failure(no_part(name, whole));
  FailedPart out{std::string(name), 0};
  if (equals == std::string_view::npos) return out;
  const std::string_view left = text.substr(equals + 1);
  const bool computes = part->computes(whole);
  const bool is_share = !computes || left.ends_with('%');
  const auto share = is_share ? share_of(left, widest(whole, *part)) : std::nullopt;
  // A GPU that crawls would take longer for a step than any clock runs.
  const double least = computes ? 0.01 : 0;
  if (!share || !(*share >= least) || !(*share <= 1)) {
    return failure(
        {ErrorCode::kBadValue, fmt::format("'{}' is not what is left of {}", left, name), "", "",
         computes ? "a share of its speed from 1% on, such as 80%; alone it is gone"
                  : "a share such as 50%, or a rate up to its own such as \"100 Gb/s\""});
  }
  out.left = *share;
  return out;
}

std::string text_of(const FailedPart& part) {
  return part.left > 0 ? fmt::format("{}={}%", part.part, 100 * part.left) : part.part;
}

std::vector<VertexId> gpus_of_part(std::string_view name, const Topology& graph) {
  std::vector<VertexId> out;
  const auto part = find_part(graph, name);
  if (!part || !part->computes(graph)) return out;
  for (const VertexId gpu : graph.gpus()) {
    if (part->holds(graph, gpu)) out.push_back(gpu);
  }
  return out;
}

namespace {

// The parts of a graph that are left.
class Remains {
 public:
  Remains(const Topology& whole, const std::vector<FailedPart>& parts)
      : whole_(whole),
        left_(whole.links().size(), 1),
        speed_(whole.vertices().size(), 1),
        gone_(whole.vertices().size(), false) {
    for (const FailedPart& failed : parts) fail(failed);
    drop_unlinked();
  }

  Topology graph() const {
    Topology out;
    out.reserve(whole_.vertices().size(), whole_.links().size());
    std::vector<VertexId> now(whole_.vertices().size());
    for (std::size_t i = 0; i < whole_.vertices().size(); ++i) {
      if (gone_[i]) continue;
      // Names follow from kind, node and index, or were given.
      Vertex vertex = whole_.vertices()[i];
      vertex.node -= static_cast<std::int32_t>(
          std::ranges::count_if(gone_nodes_, [&](auto node) { return node < vertex.node; }));
      now[i] = out.add_vertex(vertex, whole_.given_name(VertexId(i)));
      if (vertex.kind != VertexKind::kGpu) continue;
      GpuKind kind = whole_.kind(VertexId(i));
      kind.speed *= speed_[i];
      out.set_kind(now[i], kind);
    }
    for (std::size_t i = 0; i < whole_.links().size(); ++i) {
      Link link = whole_.links()[i];
      link.from = now[link.from.index()];
      link.to = now[link.to.index()];
      link.capacity *= left_[i];
      if (left_[i] > 0 && link.from.valid() && link.to.valid()) out.add_link(link);
    }
    std::vector<VertexId> order;
    for (const VertexId gpu : whole_.gpus()) {
      if (now[gpu.index()].valid()) order.push_back(now[gpu.index()]);
    }
    out.set_device_order(std::move(order));
    out.set_flows(whole_.flows());
    return out;
  }

 private:
  void fail(const FailedPart& failed) {
    const auto part = find_part(whole_, failed.part);
    STEPCAST_ASSERT(part.has_value(), "a failed part is one of the graph's");
    if (part->computes(whole_)) {
      if (part->is_node() && !(failed.left > 0)) gone_nodes_.insert(part->node);
      for (std::size_t i = 0; i < gone_.size(); ++i) {
        if (!part->holds(whole_, VertexId(i))) continue;
        speed_[i] *= failed.left;
        if (!(failed.left > 0)) gone_[i] = true;
      }
      return;
    }
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (concerns(whole_, *part, whole_.links()[i])) left_[i] *= failed.left;
    }
  }

  // A switch all of whose cables are gone is gone with them, and so is one that a partly used node
  // of a regular cluster, whose parts have no names of their own, has no cable to.
  void drop_unlinked() {
    std::vector<bool> linked(gone_.size(), false);
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const Link& link = whole_.links()[i];
      if (!(left_[i] > 0) || gone_[link.from.index()] || gone_[link.to.index()]) continue;
      linked[link.from.index()] = linked[link.to.index()] = true;
    }
    for (std::size_t i = 0; i < linked.size(); ++i) {
      const bool gpu = whole_.vertices()[i].kind == VertexKind::kGpu;
      const VertexId id(i);
      const bool had_links = !whole_.out_links(id).empty() || whole_.given_name(id).empty();
      if (!gpu && !linked[i] && had_links) gone_[i] = true;
    }
  }

  const Topology& whole_;
  std::vector<double> left_;   // by link: of its capacity
  std::vector<double> speed_;  // by vertex, of GPUs
  std::vector<bool> gone_;     // by vertex
  std::set<std::int32_t> gone_nodes_;
};

}  // namespace

Topology without_failed(const Topology& whole, const std::vector<FailedPart>& parts) {
  return Remains(whole, parts).graph();
}

}  // namespace stepcast
