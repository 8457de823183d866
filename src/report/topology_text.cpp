// SPDX-License-Identifier: Apache-2.0
#include "report/topology_text.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "cluster/cluster.h"
#include "cluster/topology.h"
#include "cluster/write_cluster.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "report/document_form.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

// Links of one group agree in the kinds of both ends, in capacity and in latency.
using LinkGroup = std::tuple<VertexKind, VertexKind, LinkKind, double, double>;

Written sources_text(const ClusterSpec& spec) {
  Written out;
  for (const std::string& source : spec.sources) out += line("source: " + source, Form::kText);
  if (!spec.notes.empty()) out += line("notes: " + spec.notes, Form::kText);
  return out;
}

}  // namespace

Written topology_table(const Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec;
  Written out = line(fmt::format("{}: {} ({}) in {}", spec.name, counted_text(spec.gpus, "GPU"),
                                 spec.accelerator.title, counted_text(spec.nodes, "node")),
                     Form::kText) +
                "\n";
  std::map<VertexKind, std::size_t> vertices;
  for (const Vertex& vertex : cluster.topology.vertices()) ++vertices[vertex.kind];
  TextTable kinds({{"vertex", Align::kLeft}, {"count"}});
  for (const auto& [kind, count] : vertices)
    kinds.add_row({name_of(kind), fmt::format("{}", count)});
  std::map<LinkGroup, std::size_t> links;
  for (const Link& link : cluster.topology.links()) {
    const auto& all = cluster.topology.vertices();
    ++links[{all[link.from.index()].kind, all[link.to.index()].kind, link.kind,
             link.capacity.value(), link.latency.value()}];
  }
  TextTable groups({{"from", Align::kLeft},
                    {"to", Align::kLeft},
                    {"link", Align::kLeft},
                    {"count"},
                    {"each"},
                    {"latency"}});
  for (const auto& [group, count] : links) {
    const auto& [from, to, kind, capacity, latency] = group;
    groups.add_row({name_of(from), name_of(to), name_of(kind), fmt::format("{}", count),
                    rate_text(BytesPerSecond(capacity)), time_text(Seconds(latency))});
  }
  out += kinds.text() + "\n";
  if (!groups.empty()) out += groups.text() + "\nA link is one direction.\n";
  return out + sources_text(spec);
}

Written topology_json(const Cluster& cluster) { return json_file(graph_file(cluster), 1); }

}  // namespace stepcast
