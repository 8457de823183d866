// SPDX-License-Identifier: Apache-2.0
// Clusters: bases that ship, with whole and partly used nodes and overrides; clusters without a
// base; graphs with uneven nodes, thin cables and missing NICs; this machine.
#include <fmt/format.h>

#include "core/fnv1a.h"
#include "core/json.h"

#include "generate/legal_scenario.h"
#include "generate/sketch.h"
#include "layout/data_folders.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

const std::vector<ClusterSpec>& bases() {
  static const std::vector<ClusterSpec> all = list_clusters(source_folders().topologies).value();
  return all;
}

const std::vector<Accelerator>& accelerators() {
  static const std::vector<Accelerator> all =
      list_accelerators(source_folders().topologies).value();
  return all;
}

// Nodes of a job; few are large.
std::int64_t nodes_of(Draw& draw) {
  if (draw.chance(0.02)) return draw.number({128, 512});
  if (draw.chance(0.08)) return draw.number({16, 24, 32});
  return draw.number({1, 1, 1, 2, 2, 2, 3, 4, 6, 8});
}

std::string gigabits(Draw& draw) {
  return fmt::format("{} Gb/s", draw.number({10, 25, 100, 200, 400, 800}));
}
std::string gigabytes(Draw& draw) {
  return fmt::format("{} GB/s", draw.number({16, 32, 63, 150, 300, 450, 900}));
}
std::string microseconds(Draw& draw) { return fmt::format("{} us", draw.number({0, 1, 2, 5, 20})); }

void draw_overrides(Draw& draw, json& out) {
  const auto add = [&](const char* key, json value) {
    if (draw.chance(0.15)) out[key] = std::move(value);
  };
  add("gpus_per_node", draw.number({2, 3, 4, 6, 8, 16}));
  add("nics_per_node", draw.number({1, 2, 4, 8}));
  add("nic", gigabits(draw));
  add("scale_up_bandwidth", gigabytes(draw));
  add("scale_up_latency", microseconds(draw));
  add("pcie", fmt::format("{} GB/s", draw.number({12, 25, 63})));
  add("network_latency", microseconds(draw));
  add("switch_latency", microseconds(draw));
  add("rail_optimised", draw.chance(0.5));
  add("oversubscription", draw.number({1, 2, 4}));
  add("nodes_per_leaf_group", draw.number({1, 2, 4}));
  add("cpu", draw.word({"intel", "amd", "nvidia", "other"}));
  add("network", draw.word({"infiniband", "roce", "efa", "tcp", "slingshot"}));
  add("nvls", draw.chance(0.5));
  add("accelerator", draw.of(accelerators()).name);
  if (draw.chance(0.1)) {
    out["nodes_per_leaf_group"] = 2;
    out["pod_nodes"] = 4;
    out["pod_oversubscription"] = draw.number({1, 3});
  }
  if (draw.chance(0.5)) {
    out["disk_read"] = draw.word({"5 GB/s", "25 GB/s"});
    out["disk_write"] = draw.word({"4 GB/s", "20 GB/s"});
  }
  if (draw.chance(0.2)) out["jitter"] = draw.chance(0.5) ? 0.02 : 0.2;
  if (draw.chance(0.2)) out["spread"] = draw.chance(0.5) ? 0.01 : 0.1;
  if (draw.chance(0.05)) out["nvlink_domain_nodes"] = draw.number({1, 2, 4});
}

// Two sites, or as many as there are nodes.
void draw_sites(Draw& draw, std::int64_t nodes, json& out) {
  if (nodes < 2 || !draw.chance(0.1)) return;
  const std::int64_t sites = nodes % 2 == 0 && draw.chance(0.7) ? 2 : nodes;
  out["sites"] = sites;
  out["wan"] = fmt::format("{} Gb/s", draw.number({1, 10, 100, 800}));
  out["wan_latency"] = fmt::format("{} ms", draw.number({1, 10, 60}));
  if (!out.contains("nvlink_domain_nodes")) out["nvlink_domain_nodes"] = 1;
}

json based_cluster(Draw& draw) {
  const ClusterSpec& base = draw.of(bases());
  const std::int64_t nodes = nodes_of(draw);
  if (draw.chance(0.2)) return fmt::format("{}x{}", base.name, nodes);
  json out = {{"base", base.name}};
  if (draw.chance(0.3)) draw_overrides(draw, out);
  if (draw.chance(0.35)) {
    const std::int64_t most = nodes * base.gpus_per_node;
    out["gpus"] = 1 + draw.below(most);
  } else {
    out["nodes"] = nodes;
    draw_sites(draw, nodes, out);
  }
  return out;
}

// An accelerator that stands in no list.
json own_accelerator(Draw& draw) {
  json out = {
      {"name", "own"},
      {"architecture",
       draw.word({"ampere", "hopper", "ada", "blackwell", "cdna3", "cdna4", "other"})},
      {"sm_count", draw.number({40, 108, 132})},
      {"memory", fmt::format("{} GiB", draw.number({8, 24, 80, 180}))},
      {"memory_bandwidth", fmt::format("{} GB/s", draw.number({600, 2000, 4800}))},
      {"power_w", 400},
      {"dense_peak", {{"bf16", "200 TFLOP/s"}, {"fp16", "200 TFLOP/s"}, {"fp32", "20 TFLOP/s"}}}};
  if (draw.chance(0.5)) out["dense_peak"]["fp8"] = "400 TFLOP/s";
  return out;
}

json own_cluster(Draw& draw) {
  const std::int64_t nodes = draw.number({1, 1, 2, 3, 4});
  json out = {{"accelerator", draw.of(accelerators()).name},
              {"nodes", nodes},
              {"gpus_per_node", draw.number({1, 2, 3, 4, 8})},
              {"scale_up", draw.word({"nvswitch", "nvlink_mesh", "pcie"})},
              {"scale_up_bandwidth", gigabytes(draw)},
              {"pcie", "32 GB/s"},
              {"nics_per_node", nodes > 1 ? draw.number({1, 2, 4}) : draw.number({0, 1})}};
  if (draw.chance(0.3)) out["accelerator"] = own_accelerator(draw);
  if (out["nics_per_node"] > 0) {
    out["nic"] = gigabits(draw);
    out["network"] = draw.word({"infiniband", "roce", "efa", "tcp"});
    out["network_latency"] = fmt::format("{} us", draw.number({1, 3, 15}));
  }
  if (draw.chance(0.3)) out["scale_up_latency"] = microseconds(draw);
  draw_sites(draw, nodes, out);
  if (draw.chance(0.2)) out["name"] = "own cluster";
  return out;
}

// A graph: nodes of unequal size behind one switch, with cables that run at a part of their rate
// and NICs that are missing.
class Graph {
 public:
  explicit Graph(Draw& draw) : draw_(draw) {}

  json cluster() {
    const std::int64_t nodes = draw_.number({1, 2, 2, 3});
    const bool switched = draw_.chance(0.6);
    if (nodes > 1) add_vertex("tor", "leaf", -1);
    for (std::int64_t node = 0; node < nodes; ++node) add_node(node, nodes > 1, switched);
    json out = {{"accelerator", draw_.word({"a100-sxm4-80g", "h100-sxm5-80g", "rtx4090-24g"})},
                {"vertices", vertices_},
                {"links", links_}};
    if (nodes > 1) out["network"] = draw_.word({"infiniband", "roce", "tcp"});
    if (draw_.chance(0.3)) out["name"] = "uneven";
    return out;
  }

 private:
  void add_vertex(const std::string& name, const char* kind, std::int64_t node) {
    json vertex = {{"name", name}, {"kind", kind}};
    if (node >= 0) vertex["node"] = node;
    if (kind == std::string("gpu") && draw_.chance(0.15)) {
      if (draw_.chance(0.5)) {
        vertex["speed"] = 0.8;
      } else {
        vertex["accelerator"] = "a100-sxm4-40g";
      }
    }
    vertices_.push_back(std::move(vertex));
  }
  // One in five runs at a half or a tenth of its rate.
  void add_cable(const std::string& a, const std::string& b, double gigabytes, double latency_us) {
    const double part = draw_.chance(0.8) ? 1 : draw_.chance(0.5) ? 0.5 : 0.1;
    json link = {{"between", {a, b}}, {"capacity", fmt::format("{} GB/s", gigabytes * part)}};
    if (latency_us > 0) link["latency"] = fmt::format("{} us", latency_us);
    links_.push_back(std::move(link));
  }
  void add_node(std::int64_t node, bool networked, bool switched) {
    const auto name = [&](const char* what, std::int64_t index) {
      return fmt::format("node{}/{}{}", node, what, index);
    };
    const std::int64_t gpus = draw_.number({1, 2, 2, 4}), nics = draw_.number({1, 1, 2});
    add_vertex(name("pcie", 0), "pcie", node);
    if (switched && gpus > 1) add_vertex(name("switch", 0), "nvswitch", node);
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
      add_vertex(name("gpu", gpu), "gpu", node);
      add_cable(name("gpu", gpu), name("pcie", 0), 31.5, 0);
      if (switched && gpus > 1) add_cable(name("gpu", gpu), name("switch", 0), 300, 0.6);
    }
    for (std::int64_t nic = 0; networked && nic < nics; ++nic) {
      add_vertex(name("nic", nic), "nic", node);
      add_cable(name("pcie", 0), name("nic", nic), 31.5, 0);
      add_cable(name("nic", nic), "tor", 25, 0.6);
    }
  }

  Draw& draw_;
  json vertices_ = json::array(), links_ = json::array();
};

// Ranks on the cores of this machine, whatever it is.
json local_cluster_of(Draw& draw) {
  json out = {{"base", "local"}, {"gpus", draw.number({1, 2, 4, 8})}};
  out["shared_cores"] = draw.number({0, 1, 2, 3, 4});
  return out;
}

// A cluster that was read back with more keys, where nothing speaks against these.
void try_cluster(json changed, json& out, Cluster& cluster) {
  const auto document = std::move(*JsonDocument::parse(changed.dump(), "drawn.json"));
  Cluster read = read_cluster(document->root(), source_folders().topologies);
  if (!document->ok()) return;
  out = std::move(changed);
  cluster = std::move(read);
}

// Another fabric than a tree of joined rails. It draws by itself, so that all else stays as drawn.
void draw_fabric(json& out, Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec;
  Draw draw(SeededRandom(fnv1a(out.dump())));
  if (!out.is_object() || spec.is_graph || spec.nics_per_node == 0 || !draw.chance(0.25)) return;
  json changed = out;
  const double form = draw.uniform();
  if (draw.chance(0.4)) changed["planes"] = draw.number({2, 3, 4, 8});
  if (form < 0.3) changed["rails_joined"] = !spec.rail_optimised;
  if (draw.chance(0.3)) {  // the second half of the nodes first
    const std::int64_t half = spec.nodes / 2;
    const std::string first = half > 0 ? fmt::format(",0-{}", half - 1) : "";
    changed["place"] = fmt::format("node[{}-{}{}]", half, spec.nodes - 1, first);
  }
  if (form >= 0.8 && draw.chance(0.7)) {
    changed["ecmp"] = "hashed";
    changed["uplinks"] = draw.number({1, 2, 4, 8});
    if (draw.chance(0.5)) changed["ecmp_flows"] = draw.number({1, 2, 16});
    if (draw.chance(0.5)) changed["ecmp_seed"] = draw.below(1000);
  }
  if (form >= 0.3 && form < 0.8) {
    for (const char* key : {"rail_optimised", "oversubscription", "nodes_per_leaf_group",
                            "pod_nodes", "pod_oversubscription"}) {
      changed.erase(key);
    }
    const std::int64_t at_router = draw.number({1, 1, 2, 4});
    changed["nodes_per_router"] = at_router;
    changed["router_link"] = gigabits(draw);
    const bool torus = form >= 0.55;
    changed["fabric"] = torus ? "torus" : "dragonfly";
    if (torus) {
      const std::int64_t routers = (spec.nodes + at_router - 1) / at_router;
      const std::int64_t across = draw.number({1, 2, 3, 4}), deep = draw.number({1, 2});
      changed["torus"] = {(routers + across * deep - 1) / (across * deep), across, deep};
    } else {
      changed["routers_per_group"] = draw.number({1, 2, 3, 8});
      changed["global_links"] = draw.number({1, 2, 4});
      changed["global_link"] = gigabits(draw);
    }
  }
  try_cluster(std::move(changed), out, cluster);
}

// A node or a GPU of another model than the cluster's.
void draw_other_gpus(Draw& draw, json& out, Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec;
  if (!out.is_object() || spec.is_graph || spec.accelerator.is_cpu() || !draw.chance(0.08)) return;
  const VertexId gpu = draw.of(cluster.topology.gpus());
  const std::string name = cluster.topology.name(gpu);
  const bool node = draw.chance(0.6);
  json changed = out;
  changed["accelerator_of"] = {(node ? name.substr(0, name.find('/')) : name) + "=" +
                               draw.of(accelerators()).name};
  try_cluster(std::move(changed), out, cluster);
}

// One or two parts of a cluster that have failed, or run at a part of their rate or speed.
void draw_failed_parts(Draw& draw, json& out, Cluster& cluster) {
  if (!out.is_object() || !draw.chance(0.15)) return;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cluster.topology.vertices().size(); ++i) {
    const VertexKind kind = cluster.topology.vertices()[i].kind;
    const bool inside = kind == VertexKind::kPcieSwitch || kind == VertexKind::kHost;
    const bool fails = kind == VertexKind::kNic || (!inside && draw.chance(0.2));
    if (fails) parts.push_back(cluster.topology.name(VertexId(i)));
  }
  if (parts.empty()) return;
  json failed = json::array();
  for (std::int64_t part = draw.number({1, 2}); part > 0; --part) {
    const std::string name = draw.of(parts);
    const bool slow = draw.chance(0.5);
    failed.push_back(slow ? name + draw.word({"=50%", "=10%", "=80%"}) : name);
  }
  json changed = out;
  changed["fail"] = std::move(failed);
  try_cluster(std::move(changed), out, cluster);  // something of each node may be left
}

}  // namespace

bool draw_cluster(Draw& draw, Sketch& sketch) {
  const double form = draw.uniform();
  json& out = sketch.file["cluster"];
  if (sketch.fuses_experts) {
    out = {{"base", draw.word({"dgx-b200", "gb200-nvl72"})}, {"gpus", 8}};
  } else if (form < 0.75) {
    out = based_cluster(draw);
  } else if (form < 0.87) {
    out = own_cluster(draw);
  } else if (form < 0.95) {
    out = Graph(draw).cluster();
  } else {
    out = local_cluster_of(draw);
  }
  const auto document = std::move(*JsonDocument::parse(out.dump(), "drawn.json"));
  sketch.cluster = read_cluster(document->root(), source_folders().topologies);
  if (!document->ok()) return false;
  draw_fabric(out, sketch.cluster);
  draw_other_gpus(draw, out, sketch.cluster);
  draw_failed_parts(draw, out, sketch.cluster);
  return true;
}

}  // namespace stepcast::generate
