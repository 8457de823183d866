// SPDX-License-Identifier: Apache-2.0
#include "cluster/write_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "cluster/local_cluster.h"
#include "cluster/placement.h"
#include "cluster/topology.h"
#include "core/id.h"
#include "core/json_tree.h"
#include "core/write_rows.h"

namespace stepcast {
namespace {

struct WrittenUnit {
  double factor;
  const char* name;
};
constexpr WrittenUnit kGigabytes{1e9, "GB/s"}, kGigabits{1e9 / 8, "Gb/s"}, kBytes{1, "B/s"};
constexpr WrittenUnit kMicroseconds{1e-6, "us"}, kSeconds{1, "s"};
constexpr WrittenUnit kTeraflops{1e12, "TFLOP/s"}, kGigaflops{1e9, "GFLOP/s"};

// Writes a number in the first unit in which it reads back as this very value; a quotient is
// rounded, so its neighbours are tried too.
template <class Value>
std::string with_unit(Value value, std::initializer_list<WrittenUnit> units) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  for (const auto& [factor, name] : units) {
    const double near = value.value() / factor;
    for (const double number : {near, std::nextafter(near, 0), std::nextafter(near, kEndless)}) {
      if (number * factor == value.value()) return fmt::format("{} {}", number, name);
    }
  }
  return fmt::format("{} {}", value.value() / units.begin()->factor, units.begin()->name);
}

std::string rate_text(BytesPerSecond rate) { return with_unit(rate, {kGigabytes, kBytes}); }
std::string time_text(Seconds time) { return with_unit(time, {kMicroseconds, kSeconds}); }

SortedJson to_json(const Accelerator& accelerator) {
  if (!accelerator.found_as.empty()) return accelerator.found_as;
  SortedJson out = {{"name", accelerator.name},
                    {"architecture", name_of(accelerator.architecture)},
                    {"sm_count", accelerator.sm_count},
                    {"memory", fmt::format("{} B", accelerator.memory)},
                    {"memory_bandwidth", rate_text(accelerator.memory_bandwidth)},
                    {"dense_peak", SortedJson::object()}};
  for (const auto& [type, rate] : accelerator.dense_peak) {
    out["dense_peak"][name_of(type)] = with_unit(rate, {kTeraflops, kGigaflops});
  }
  if (accelerator.title != accelerator.name) out["title"] = accelerator.title;
  const std::int64_t capability = accelerator.compute_capability;
  if (capability > 0) {
    out["compute_capability"] = fmt::format("{}.{}", capability / 10, capability % 10);
  }
  if (accelerator.power_w > 0) out["power_w"] = accelerator.power_w;
  if (accelerator.cores > 0) out["cores"] = accelerator.cores;
  if (!accelerator.profile.empty()) out["profile"] = accelerator.profile;
  return out;
}

SortedJson vertices_of(const Cluster& cluster) {
  const Topology& graph = cluster.topology;
  SortedJson out = SortedJson::array();
  for (std::size_t i = 0; i < graph.vertices().size(); ++i) {
    const Vertex& vertex = graph.vertices()[i];
    SortedJson one = {{"name", graph.name(VertexId(i))}, {"kind", name_of(vertex.kind)}};
    if (vertex.node >= 0) one["node"] = vertex.node;
    const GpuKind kind = graph.kind(VertexId(i));
    if (kind.model > 0) one["accelerator"] = to_json(cluster.accelerator(kind.model));
    if (kind.speed < 1) one["speed"] = kind.speed;
    out.push_back(std::move(one));
  }
  return out;
}

bool is_way_back(const Link& one, const Link& other) {
  return one.from == other.to && one.to == other.from && one.capacity == other.capacity &&
         one.latency == other.latency;
}

SortedJson links_of(const Topology& graph) {
  SortedJson out = SortedJson::array();
  const std::vector<Link>& links = graph.links();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    const std::string from = graph.name(link.from), to = graph.name(link.to);
    SortedJson one = {{"capacity", rate_text(link.capacity)}};
    if (i + 1 < links.size() && is_way_back(link, links[i + 1])) {
      one["between"] = {from, to};
      ++i;
    } else {
      one["from"] = from;
      one["to"] = to;
    }
    if (link.latency != Seconds()) one["latency"] = time_text(link.latency);
    out.push_back(std::move(one));
  }
  return out;
}

// A regular cluster and a graph have these keys in common. This machine says what else it is.
SortedJson identity_of(const ClusterSpec& c) {
  SortedJson out = SortedJson::object();
  if (!c.base.empty()) out["base"] = c.base;
  const char* unnamed = c.is_graph ? kUnnamedGraph : kUnnamedCluster;
  if (c.name != (c.base.empty() ? unnamed : c.base)) out["name"] = c.name;
  const bool local = c.base == kLocalCluster;
  if (!local || !c.accelerator.is_cpu()) out["accelerator"] = to_json(c.accelerator);
  if (local) return out;
  if (c.base.empty() && c.title != c.name) out["title"] = c.title;
  if (!c.provider.empty()) out["provider"] = c.provider;
  out.update(
      {{"cpu", name_of(c.cpu)}, {"nvls", c.nvls}, {"nvlink_domain_nodes", c.nvlink_domain_nodes}});
  if (c.network) out["network"] = name_of(*c.network);
  if (c.host_memory > 0) out["host_memory"] = fmt::format("{} B", c.host_memory);
  if (c.host_cores > 0) out["host_cores"] = c.host_cores;
  for (const auto& [key, rate] :
       {std::pair("host_memory_bandwidth", c.host_memory_bandwidth),
        std::pair("disk_read", c.disk_read), std::pair("disk_write", c.disk_write)}) {
    if (rate.value() > 0) out[key] = rate_text(rate);
  }
  if (c.shared_cores > 0 || c.accelerator.is_cpu()) out["shared_cores"] = c.shared_cores;
  if (c.jitter > 0) out["jitter"] = c.jitter;
  if (c.spread > 0) out["spread"] = c.spread;
  return out;
}

SortedJson shape_of(const Cluster& cluster) {
  const ClusterSpec& c = cluster.spec;
  SortedJson out = {{"gpus", c.gpus + c.failed_gpus},
                    {"gpus_per_node", c.gpus_per_node},
                    {"scale_up", name_of(c.scale_up)},
                    {"scale_up_bandwidth", rate_text(c.scale_up_bandwidth)},
                    {"scale_up_latency", time_text(c.scale_up_latency)},
                    {"pcie", rate_text(c.pcie_bandwidth)},
                    {"nics_per_node", c.nics_per_node},
                    {"network_latency", time_text(c.network_latency)},
                    {"switch_latency", time_text(c.switch_latency)}};
  if (c.fabric.kind == FabricKind::kFatTree) {
    out.update({{"rail_optimised", c.rail_optimised},
                {"nodes_per_leaf_group", c.nodes_per_leaf_group},
                {"oversubscription", c.oversubscription},
                {"pod_nodes", c.pod_nodes},
                {"pod_oversubscription", c.pod_oversubscription}});
  }
  Json fabric = Json::object();
  write_rows(Fabric::fields(), &c.fabric, fabric);
  for (const auto& [key, value] : fabric.items()) out[key] = SortedJson(value);
  if (const std::string place = place_text(c); !place.empty()) out["place"] = place;
  if (!c.fabric.slurm_topology.empty()) out["slurm_topology"] = c.fabric.slurm_topology;
  if (c.nics_per_node > 0) out["nic"] = with_unit(c.nic_bandwidth, {kGigabits, kBytes});
  if (c.sites > 1) {
    out["sites"] = c.sites;
    out["wan"] = with_unit(c.wan_bandwidth, {kGigabits, kBytes});
    out["wan_latency"] = time_text(c.wan_latency);
  }
  for (const FailedPart& part : c.failed) out["fail"].push_back(text_of(part));
  for (const OtherGpus& one : c.other_gpus) {
    const Accelerator& accelerator = cluster.accelerator(one.model);
    out["accelerator_of"].push_back(
        one.part + "=" + (accelerator.found_as.empty() ? accelerator.name : accelerator.found_as));
  }
  return out;
}

}  // namespace

SortedJson graph_file(const Cluster& cluster) {
  ClusterSpec as_graph = cluster.spec;
  as_graph.base.clear();
  as_graph.is_graph = true;
  SortedJson out = identity_of(as_graph);
  out["stepcast_cluster"] = 1;
  out["name"] = cluster.spec.name;
  if (!cluster.spec.sources.empty()) out["sources"] = cluster.spec.sources;
  if (!cluster.spec.notes.empty()) out["notes"] = cluster.spec.notes;
  // A reader numbers vertices like this: node by node, and last what stands in none.
  const auto node_of = [](const SortedJson& vertex) {
    return vertex.value("node", std::numeric_limits<std::int32_t>::max());
  };
  const SortedJson made = vertices_of(cluster);
  std::vector<SortedJson> vertices(made.begin(), made.end());
  std::ranges::stable_sort(vertices, {}, node_of);
  out["vertices"] = vertices;
  out["links"] = links_of(cluster.topology);
  return out;
}

SortedJson to_json(const Cluster& cluster) {
  const ClusterSpec& c = cluster.spec;
  const bool local = c.base == kLocalCluster;
  // The base of a graph takes no overrides.
  if (c.is_graph && !c.base.empty() && !local) {
    SortedJson named = {{"base", c.base}};
    for (const FailedPart& part : c.failed) named["fail"].push_back(text_of(part));
    return named;
  }
  SortedJson out = identity_of(c);
  if (local) {
    out.update({{"gpus", c.gpus}, {"shared_cores", c.shared_cores}});
  } else if (c.is_graph) {
    out["vertices"] = vertices_of(cluster);
    out["links"] = links_of(cluster.topology);
  } else {
    out.update(shape_of(cluster));
  }
  return out;
}

}  // namespace stepcast
