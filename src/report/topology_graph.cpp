// SPDX-License-Identifier: Apache-2.0
// The graph through Boost.Graph's own writers, so that its tools read it back.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/dynamic_property_map.hpp>
#include <sstream>
#include <string>

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
  std::string label;
  double capacity_bytes_per_s = 0;
  double latency_s = 0;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, VertexLabel, LinkLabel>;

Graph graph_of(const Topology& topology) {
  Graph graph(topology.vertices().size());
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    graph[i] = {topology.name(VertexId(i)), name_of(topology.vertices()[i].kind)};
  }
  for (const Link& link : topology.links()) {
    boost::add_edge(link.from.index(), link.to.index(),
                    LinkLabel{name_of(link.kind), rate_text(link.capacity), link.capacity.value(),
                              link.latency.value()},
                    graph);
  }
  return graph;
}

}  // namespace

std::string topology_dot(const Cluster& cluster) {
  Graph graph = graph_of(cluster.topology);
  boost::dynamic_properties properties;
  properties.property("node_id", boost::get(boost::vertex_index, graph));
  properties.property("label", boost::get(&VertexLabel::name, graph));
  properties.property("kind", boost::get(&VertexLabel::kind, graph));
  properties.property("label", boost::get(&LinkLabel::label, graph));
  std::ostringstream out;
  boost::write_graphviz_dp(out, graph, properties);
  return out.str();
}

std::string topology_graphml(const Cluster& cluster) {
  Graph graph = graph_of(cluster.topology);
  boost::dynamic_properties properties;
  properties.property("name", boost::get(&VertexLabel::name, graph));
  properties.property("kind", boost::get(&VertexLabel::kind, graph));
  properties.property("link", boost::get(&LinkLabel::kind, graph));
  properties.property("capacity_bytes_per_s", boost::get(&LinkLabel::capacity_bytes_per_s, graph));
  properties.property("latency_s", boost::get(&LinkLabel::latency_s, graph));
  std::ostringstream out;
  boost::write_graphml(out, graph, properties, true);
  return out.str();
}

}  // namespace stepcast
