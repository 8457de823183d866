// SPDX-License-Identifier: Apache-2.0
// The graph through Boost.Graph's own writers, so that its tools read it back.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/dynamic_property_map.hpp>
#include <sstream>
#include <string>

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
  std::string label;
  double capacity_bytes_per_s = 0;
  double latency_s = 0;
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, VertexLabel, LinkLabel>;

// The writers put their marks around a name; `escaped` keeps what they would let through.
Graph graph_of(const Topology& topology, std::string (*escaped)(std::string_view)) {
  Graph graph(topology.vertices().size());
  for (std::size_t i = 0; i < topology.vertices().size(); ++i) {
    const std::string name = topology.name(VertexId(i));
    graph[i] = {escaped(name), name_of(topology.vertices()[i].kind)};
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

Written topology_dot(const Cluster& cluster) {
  Graph graph = graph_of(cluster.topology, dot_label);
  boost::dynamic_properties properties;
  properties.property("node_id", boost::get(boost::vertex_index, graph));
  properties.property("label", boost::get(&VertexLabel::name, graph));
  properties.property("kind", boost::get(&VertexLabel::kind, graph));
  properties.property("label", boost::get(&LinkLabel::label, graph));
  std::ostringstream out;
  boost::write_graphviz_dp(out, graph, properties);
  return Written::escaped(out.str());
}

Written topology_graphml(const Cluster& cluster) {
  Graph graph = graph_of(cluster.topology, shown_characters);
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
