// SPDX-License-Identifier: Apache-2.0
// GraphML through Boost.Graph's own writer, so that its tools read it back; DOT by hand, because
// that writer knows no boxes.
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/property_map/dynamic_property_map.hpp>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/topology.h"
#include "core/text/characters.h"
#include "core/text/escape.h"
#include "report/number_text.h"
#include "report/topology_text.h"

namespace stepcast {
namespace {

struct VertexLabel {
  std::string name;
  std::string kind;
};

struct LinkLabel {
  std::string kind;
  double capacity_bytes_per_s = 0;
  double latency_s = 0;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, VertexLabel, LinkLabel>;

// The writer puts its marks around a name; shown_characters() keeps what it would let through.
Graph graph_of(const Topology& topology) {
  Graph graph(topology.vertices().size());
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    const std::string name = topology.name(VertexId(i));
    graph[i] = {shown_characters(name), name_of(topology.vertices()[i].kind)};
  }
  for (const Link& link : topology.links()) {
    boost::add_edge(link.from.index(), link.to.index(),
                    LinkLabel{name_of(link.kind), link.capacity.value(), link.latency.value()},
                    graph);
  }
  return graph;
}

std::string dot_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : dot_label(text)) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

// GPUs, hosts and NICs have corners, and switches are round.
const char* shape_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::kGpu:
      return "box";
    case VertexKind::kHost:
      return "box3d";
    case VertexKind::kNic:
      return "component";
    default:
      return "ellipse";
  }
}

// Links by their two ends. One that is as fast as its opposite is a cable, drawn once.
std::string edges_of(const Topology& topology) {
  using Ends = std::tuple<VertexId, VertexId, LinkKind, double, double>;
  std::map<Ends, std::size_t> ways;
  for (const Link& link : topology.links()) {
    ++ways[{link.from, link.to, link.kind, link.capacity.value(), link.latency.value()}];
  }
  std::string out;
  for (const auto& [ends, count] : ways) {
    const auto& [from, to, kind, capacity, latency] = ends;
    const auto back = ways.find({to, from, kind, capacity, latency});
    const std::size_t both = back == ways.end() ? 0 : std::min(count, back->second);
    const std::string edge = fmt::format("  {} -> {} [label=\"{}\", kind=\"{}\"", from.index(),
                                         to.index(), rate_text(BytesPerSecond(capacity)),
                                         name_of(kind));
    const auto draw = [&](std::size_t times, const char* direction) {
      for (std::size_t i = 0; i < times; ++i) out += fmt::format("{}, dir={}];\n", edge, direction);
    };
    if (from < to) draw(both, "none");
    draw(count - both, "forward");
  }
  return out;
}

}  // namespace

// Graphviz draws each node in a box of its own, over the switches of the fabric.
Written topology_dot(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  std::map<std::int32_t, std::vector<VertexId>> nodes;
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    nodes[topology.vertices()[i].node].push_back(VertexId(i));
  }
  std::string out =
      "digraph {\n  ranksep=1;\n  node [fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [fontname=\"sans-serif\", fontsize=8, color=\"gray40\"];\n";
  for (const auto& [node, vertices] : nodes) {
    const bool is_node = node >= 0;
    const char* indent = is_node ? "    " : "  ";
    if (is_node) {
      out += fmt::format("  subgraph cluster_node{0} {{\n    label=\"node {0}\";\n", node);
    }
    for (const VertexId vertex : vertices) {
      const VertexKind kind = topology.vertices()[vertex.index()].kind;
      // Inside its box a part of a node needs the node's name no more.
      std::string name = topology.name(vertex);
      const std::string prefix = fmt::format("node{}/", node);
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
      out += fmt::format("{}{} [label={}, kind=\"{}\", shape={}];\n", indent, vertex.index(),
                         dot_quoted(name), name_of(kind), shape_of(kind));
    }
    if (is_node) out += "  }\n";
  }
  return Written::escaped(out + edges_of(topology) + "}\n");
}

Written topology_graphml(const Cluster& cluster) {
  Graph graph = graph_of(cluster.topology);
  boost::dynamic_properties properties;
  properties.property("name", boost::get(&VertexLabel::name, graph));
  properties.property("kind", boost::get(&VertexLabel::kind, graph));
  properties.property("link", boost::get(&LinkLabel::kind, graph));
  properties.property("capacity_bytes_per_s", boost::get(&LinkLabel::capacity_bytes_per_s, graph));
  properties.property("latency_s", boost::get(&LinkLabel::latency_s, graph));
  std::ostringstream out;
  boost::write_graphml(out, graph, properties, true);
  return Written::escaped(out.str());
}

}  // namespace stepcast
