// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "cluster/data_folder.h"
#include "cluster/failed_parts.h"
#include "cluster/topology.h"
#include "core/id.h"
#include "core/json.h"
#include "core/quantity.h"

namespace stepcast {
namespace {

using namespace literals;

const std::vector<std::string>& scale_up_names() {
  static const std::vector<std::string> names = {"nvswitch", "nvlink_mesh", "pcie"};
  return names;
}

struct CpuRow {
  const char* name;
  NodeHost usual;  // of a node
};

// Two sockets of the processors that nodes of GPUs have mostly had, and their memory on paper:
// Xeon 8480C, 16 channels of DDR5-4800; EPYC 7742, 16 of DDR4-3200; one Grace, LPDDR5X. One core
// by itself: STREAM triad on one core of Sapphire Rapids (12 to 14 GB/s); AdamW of 64 Mi elements
// on one core of an EPYC (33 GB/s); Grace's data sheet (40 GB/s), of which the same part.
constexpr std::array kCpus = {
    CpuRow{"intel", {BytesPerSecond(614.4e9), 112, BytesPerSecond(13.0e9)}},
    CpuRow{"amd", {BytesPerSecond(409.6e9), 128, BytesPerSecond(33.0e9)}},
    CpuRow{"nvidia", {BytesPerSecond(512.0e9), 72, BytesPerSecond(33.0e9)}},
    CpuRow{"other", {BytesPerSecond(409.6e9), 64, BytesPerSecond(13.0e9)}}};
static_assert(kCpus.size() == static_cast<std::size_t>(CpuVendor::kOther) + 1,
              "a row for each vendor, in the order of the enumerators");

std::vector<std::string> cpu_names() {
  std::vector<std::string> names;
  for (const CpuRow& row : kCpus) names.emplace_back(row.name);
  return names;
}

struct NetworkRow {
  const char* name;
  Seconds latency;
  bool verbs = false;
};

// The rows are in the order of Network.
constexpr std::array kNetworks = {NetworkRow{"infiniband", 1.2_us, true},
                                  NetworkRow{"roce", 1.0_us, true},
                                  NetworkRow{"efa", 10.0_us},
                                  NetworkRow{"tcp", 20.0_us},
                                  NetworkRow{"slingshot", 1.7_us},
                                  NetworkRow{"none", 1.2_us}};

static_assert(kNetworks.size() == static_cast<std::size_t>(Network::kNone) + 1,
              "a row for each network, in the order of the enumerators");

const NetworkRow& row_of(Network network) { return kNetworks[static_cast<std::size_t>(network)]; }

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const NetworkRow& row : kNetworks) names.emplace_back(row.name);
  return names;
}

constexpr std::int64_t kMaxPerNode = 1024;

template <class T>
void set(T& field, const std::optional<T>& value) {
  if (value) field = *value;
}

void set_rate(ObjectReader& reader, std::string_view key, BytesPerSecond& field) {
  const auto rate = reader.rate(key);
  if (!rate) return;
  if (!(rate->value() > 0)) {
    reader.fail(key, ErrorCode::kBadValue, "a bandwidth of 0", "more than 0");
    return;
  }
  field = *rate;
}

std::optional<Accelerator> named_accelerator(const JsonValue& value, const std::string& name,
                                             const std::string& topologies_folder) {
  Result<Accelerator> found = find_accelerator(name, topologies_folder);
  if (found) return std::move(*found);
  for (const Error& error : found.error()) {
    if (error.file.empty()) {
      value.fail(error.code, error.message, error.hint);
    } else {
      value.fail(error.code, to_string(error));
    }
  }
  return std::nullopt;
}

// A job takes racks evenly, as schedulers place it that know of blocks (Slurm, topology/block and
// --segment): 256 GPUs are 64 in each of four racks of 72. Where that takes more than an eighth
// more racks than hold the job, all but the last are full.
std::int64_t nodes_of_domain(std::int64_t nodes, std::int64_t whole) {
  if (whole == 1 || nodes <= whole) return whole;
  const std::int64_t least = (nodes + whole - 1) / whole;
  for (std::int64_t domains = least; 8 * domains <= 9 * least; ++domains) {
    if (nodes % domains == 0) return nodes / domains;
  }
  return whole;
}

}  // namespace

const char* name_of(ScaleUp scale_up) {
  return scale_up_names()[static_cast<std::size_t>(scale_up)].c_str();
}

const char* name_of(CpuVendor cpu) { return kCpus[static_cast<std::size_t>(cpu)].name; }

NodeHost host_of(const ClusterSpec& spec) {
  NodeHost host = kCpus[static_cast<std::size_t>(spec.cpu)].usual;
  if (spec.host_memory_bandwidth.value() > 0) host.memory_bandwidth = spec.host_memory_bandwidth;
  // Ranks on processors are their own hosts.
  if (spec.accelerator.is_cpu()) {
    host.core_rate = spec.accelerator.memory_bandwidth;
    if (spec.shared_cores > 0) host.cores = spec.shared_cores;
  }
  if (spec.host_cores > 0) host.cores = spec.host_cores;
  return host;
}

const char* name_of(Network network) { return row_of(network).name; }

std::optional<Network> network_named(std::string_view name) {
  const auto found = std::ranges::find(kNetworks, name, &NetworkRow::name);
  if (found == kNetworks.end()) return std::nullopt;
  return static_cast<Network>(found - kNetworks.begin());
}

Seconds usual_latency(std::optional<Network> network) {
  return row_of(network.value_or(Network::kInfiniband)).latency;
}

bool speaks_verbs(std::optional<Network> network) { return network && row_of(*network).verbs; }

bool can_work_together(const Accelerator& one, const Accelerator& other) {
  return traits_of(one.architecture).runs_rccl == traits_of(other.architecture).runs_rccl;
}

void read_identity_fields(ObjectReader& reader, const std::string& topologies_folder,
                          ClusterSpec& spec) {
  set(spec.name, reader.text("name"));
  set(spec.title, reader.text("title"));
  set(spec.provider, reader.text("provider"));
  set(spec.accelerator, read_accelerator_key(reader, topologies_folder));
  if (const auto cpu = reader.choice("cpu", cpu_names())) spec.cpu = static_cast<CpuVendor>(*cpu);
  if (const auto network = reader.choice("network", network_names())) {
    spec.network = static_cast<Network>(*network);
  }
  if (const auto memory = reader.bytes("host_memory")) {
    spec.host_memory = std::llround(memory->value());
  }
  set_rate(reader, "host_memory_bandwidth", spec.host_memory_bandwidth);
  set(spec.host_cores, reader.integer("host_cores", 1, 1 << 16));
  set_rate(reader, "disk_read", spec.disk_read);
  set_rate(reader, "disk_write", spec.disk_write);
  set(spec.nvls, reader.boolean("nvls"));
  set(spec.nvlink_domain_nodes, reader.integer("nvlink_domain_nodes", 1, kMaxGpus));
  // The name "cpu" stands for a core of this machine, which all devices share.
  const auto accelerator = reader.value("accelerator");
  if (accelerator && accelerator->is_text() && spec.accelerator.is_cpu()) {
    spec.shared_cores = spec.accelerator.cores;
  }
  set(spec.shared_cores, reader.integer("shared_cores", 0, 1 << 20));
  if (spec.shared_cores > 0 && !spec.accelerator.is_cpu() && !spec.accelerator.name.empty()) {
    reader.fail(reader.has("shared_cores") ? "shared_cores" : "accelerator", ErrorCode::kIllegal,
                fmt::format("{} does not compute on the {} cores that devices share",
                            spec.accelerator.name, spec.shared_cores),
                "\"accelerator\": \"cpu\", or shared_cores 0");
  }
  set(spec.jitter, reader.number("jitter", 0, 0.5));
  set(spec.spread, reader.number("spread", 0, 0.5));
  if (reader.has("sources")) spec.sources = read_texts(reader, "sources");
  set(spec.notes, reader.text("notes"));
}

void read_shape_fields(ObjectReader& reader, ClusterSpec& spec) {
  set(spec.gpus_per_node, reader.integer("gpus_per_node", 1, kMaxPerNode));
  if (const auto kind = reader.choice("scale_up", scale_up_names())) {
    spec.scale_up = static_cast<ScaleUp>(*kind);
  }
  set_rate(reader, "scale_up_bandwidth", spec.scale_up_bandwidth);
  set(spec.scale_up_latency, reader.seconds("scale_up_latency"));
  set_rate(reader, "pcie", spec.pcie_bandwidth);

  set(spec.nics_per_node, reader.integer("nics_per_node", 0, kMaxPerNode));
  set_rate(reader, "nic", spec.nic_bandwidth);
  set(spec.network_latency, reader.seconds("network_latency"));
  set(spec.switch_latency, reader.seconds("switch_latency"));
  set(spec.rail_optimised, reader.boolean("rail_optimised"));
  set(spec.nodes_per_leaf_group, reader.integer("nodes_per_leaf_group", 1, kMaxGpus));
  set(spec.oversubscription, reader.number("oversubscription", 0.01, 1000));
  set(spec.pod_nodes, reader.integer("pod_nodes", 0, kMaxGpus));
  set(spec.pod_oversubscription, reader.number("pod_oversubscription", 0.01, 1000));
  set(spec.sites, reader.integer("sites", 1, kMaxGpus));
  set_rate(reader, "wan", spec.wan_bandwidth);
  set(spec.wan_latency, reader.seconds("wan_latency"));
  read_fabric_fields(reader, spec);
}

void read_size_fields(ObjectReader& reader, ClusterSpec& spec) {
  const auto nodes = reader.integer("nodes", 1);
  const auto gpus = reader.integer("gpus", 1);
  if (nodes) spec.nodes = *nodes;
  spec.gpus = spec.nodes * spec.gpus_per_node;
  if (gpus) {
    const std::int64_t needed = (*gpus + spec.gpus_per_node - 1) / spec.gpus_per_node;
    if (nodes && *nodes != needed) {
      reader.fail("gpus", ErrorCode::kIllegal,
                  fmt::format("{} GPUs are {} node{} of {}, and nodes says {}", *gpus, needed,
                              needed == 1 ? "" : "s", spec.gpus_per_node, *nodes),
                  "give one of the two");
    }
    spec.nodes = needed;
    spec.gpus = *gpus;
  }
  if (!reader.has("nvlink_domain_nodes")) {
    const std::int64_t of_site = std::max<std::int64_t>(spec.nodes_per_site(), 1);
    spec.nvlink_domain_nodes = nodes_of_domain(of_site, spec.nvlink_domain_nodes);
    if (spec.sites > 1) spec.nvlink_domain_nodes = std::min(spec.nvlink_domain_nodes, of_site);
  }
  if (spec.gpus > kMaxGpus) {
    reader.fail(gpus ? "gpus" : "nodes", ErrorCode::kBadValue,
                fmt::format("{} GPUs are more than this program takes", spec.gpus),
                fmt::format("at most {} GPUs", kMaxGpus));
    spec.nodes = 1;
    spec.gpus = spec.gpus_per_node;
  }
}

namespace {

// A list of texts, or one with commas.
std::vector<std::string> listed_texts(ObjectReader& reader, const char* key) {
  const auto value = reader.value(key);
  if (!value) return {};
  if (!value->is_text()) return read_texts(reader, key);
  std::vector<std::string> out;
  const std::string text = value->text().value_or("");
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// "node1/nic3=50%" as `fail` has it, in a list or a text, or {"node1/nic3": 0.5} with a share or a
// text.
std::vector<std::string> degraded_texts(ObjectReader& reader) {
  constexpr const char* kKey = "degrade";
  const auto value = reader.value(kKey);
  if (!value) return {};
  std::vector<std::string> out;
  if (value->is_object()) {
    for (const auto& [part, left] : value->members()) {
      if (left.is_text()) {
        out.push_back(part + "=" + left.text().value_or(""));
      } else if (const auto share = left.number(0, 1)) {
        out.push_back(fmt::format("{}={}%", part, 100 * *share));
      }
    }
    return out;
  }
  out = listed_texts(reader, kKey);
  for (const std::string& text : out) {
    if (text.find('=') != std::string::npos) continue;
    reader.fail(kKey, ErrorCode::kBadValue, fmt::format("'{}' does not say what is left", text),
                fmt::format("{}=50%; what is gone stands in cluster.fail", text));
  }
  return out;
}

// Parts that are gone, or slow.
bool states_parts(ObjectReader& reader) { return reader.has("fail") || reader.has("degrade"); }

// The first node of which no GPU is left.
std::optional<std::int32_t> node_without_gpu(const Topology& graph) {
  std::int32_t expected = 0;
  std::vector<std::int32_t> nodes;
  for (const VertexId gpu : graph.gpus()) nodes.push_back(graph.vertices()[gpu.index()].node);
  std::ranges::sort(nodes);
  for (const std::int32_t node : nodes) {
    if (node > expected) return expected;
    expected = node + 1;
  }
  for (const Vertex& vertex : graph.vertices()) {
    if (vertex.node >= expected) return expected;
  }
  return std::nullopt;
}

}  // namespace

std::vector<FailedPart> read_failed(ObjectReader& reader, const ClusterSpec& base,
                                    Topology& whole) {
  std::vector<std::string> texts = listed_texts(reader, "fail");
  const std::size_t gone = texts.size();
  const std::vector<std::string> slow = degraded_texts(reader);
  texts.insert(texts.end(), slow.begin(), slow.end());
  if (!states_parts(reader)) {
    for (const FailedPart& part : base.failed) texts.push_back(text_of(part));
  }
  std::vector<FailedPart> out;
  Errors errors;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto part = parse_failed_part(texts[i], whole);
    if (part) {
      out.push_back(std::move(*part));
    } else if (i >= gone && reader.has("degrade")) {
      for (const Error& error : part.error()) {
        reader.fail("degrade", error.code, error.message, error.hint);
      }
      return {};
    } else {
      errors.insert(errors.end(), part.error().begin(), part.error().end());
    }
  }
  if (errors.empty() && !out.empty()) {
    Topology left = without_failed(whole, out);
    const auto node = node_without_gpu(left);
    const auto last_node = [](const Topology& graph) {
      std::int32_t last = -1;
      for (const VertexId gpu : graph.gpus()) {
        last = std::max(last, graph.vertices()[gpu.index()].node);
      }
      return last;
    };
    const std::int32_t last = last_node(whole);
    const bool lost_a_node = last_node(left) != last && !node;
    if (lost_a_node && base.sites > 1) {
      errors.push_back({ErrorCode::kNotSupported,
                        "a node of one of several sites cannot be taken out yet", "", "",
                        "take out its GPUs but one, or give fewer nodes"});
    } else if (lost_a_node && last >= base.nvlink_domain_nodes && base.nvlink_domain_nodes > 1) {
      errors.push_back({ErrorCode::kNotSupported,
                        "a node of one of several NVLink domains cannot be taken out yet", "", "",
                        "take out its GPUs but one, or give fewer nodes"});
    } else if (left.gpus().empty() || node) {
      errors.push_back({ErrorCode::kIllegal,
                        fmt::format("node{} has no GPU left", node.value_or(0)), "", "",
                        fmt::format("node{} is the whole node", node.value_or(0))});
    } else {
      errors = left.check();
    }
    whole = std::move(left);
  }
  for (const Error& error : errors) reader.fail("fail", error.code, error.message, error.hint);
  return errors.empty() ? out : std::vector<FailedPart>();
}

namespace {

// "node1=a100-sxm4-80g": where the base's own file names some, what the reader says replaces them.
void read_other_gpus(ObjectReader& reader, const std::string& topologies_folder,
                     const Topology& graph, ClusterSpec& spec) {
  const auto value = reader.value("accelerator_of");
  if (!value) return;
  spec.other_gpus.clear();
  spec.other_accelerators.clear();
  for (const std::string& text : listed_texts(reader, "accelerator_of")) {
    const std::size_t equals = text.find('=');
    const std::string part = text.substr(0, equals);
    if (equals == std::string::npos || gpus_of_part(part, graph).empty()) {
      value->fail(equals == std::string::npos ? ErrorCode::kBadValue : ErrorCode::kNotFound,
                  fmt::format("'{}' names no GPUs and their accelerator", text),
                  "a node or a GPU and what it is, as in node1=a100-sxm4-80g");
      continue;
    }
    const auto found = named_accelerator(*value, text.substr(equals + 1), topologies_folder);
    if (!found) continue;
    if (found->is_cpu() || spec.accelerator.is_cpu()) {
      value->fail(ErrorCode::kNotSupported, "a cluster of GPUs and processors as ranks", "");
      continue;
    }
    if (!can_work_together(*found, spec.accelerator)) {
      value->fail(ErrorCode::kIllegal,
                  fmt::format("{} beside {}: NCCL and RCCL do not talk to each other", found->name,
                              spec.accelerator.name),
                  "GPUs of one vendor");
      continue;
    }
    spec.other_gpus.push_back({part, model_of(*found, spec)});
  }
}

}  // namespace

std::optional<Accelerator> read_accelerator_key(ObjectReader& reader,
                                                const std::string& topologies_folder) {
  const auto value = reader.value("accelerator");
  if (!value) return std::nullopt;
  if (value->is_object()) return read_accelerator(*value);
  const auto name = value->text();
  return name ? named_accelerator(*value, *name, topologies_folder) : std::nullopt;
}

std::int32_t model_of(const Accelerator& accelerator, ClusterSpec& spec) {
  const auto is_it = [&](const Accelerator& other) {
    return other.name == accelerator.name && other.found_as == accelerator.found_as;
  };
  if (is_it(spec.accelerator)) return 0;
  std::vector<Accelerator>& others = spec.other_accelerators;
  const auto known = std::ranges::find_if(others, is_it);
  const auto place = static_cast<std::int32_t>(known - others.begin());
  if (known == others.end()) others.push_back(accelerator);
  return place + 1;
}

void read_part_fields(ObjectReader& reader, const std::string& topologies_folder,
                      ClusterSpec& spec) {
  const bool others = reader.has("accelerator_of") || !spec.other_gpus.empty();
  if (!others && spec.failed.empty() && !states_parts(reader)) return;
  ClusterSpec sound = spec;
  sound.failed.clear();
  sound.failed_gpus = 0;
  sound.other_gpus.clear();
  Topology graph = build_topology(sound);
  read_other_gpus(reader, topologies_folder, graph, spec);
  const auto gpus = static_cast<std::int64_t>(graph.gpus().size());
  spec.failed = read_failed(reader, spec, graph);
  spec.failed_gpus = gpus - static_cast<std::int64_t>(graph.gpus().size());
  spec.gpus = gpus - spec.failed_gpus;
}

void require_shape_fields(ObjectReader& reader, const ClusterSpec& spec) {
  for (const char* key : {"accelerator", "gpus_per_node", "scale_up", "scale_up_bandwidth", "pcie",
                          "nics_per_node"}) {
    reader.required(key);
  }
  if (spec.nics_per_node == 0) return;
  for (const char* key : {"nic", "network", "network_latency"}) reader.required(key);
}

namespace {

void check_sites(ObjectReader& reader, const ClusterSpec& spec) {
  const auto fail = [&](const char* key, std::string message, const char* hint) {
    reader.fail(key, ErrorCode::kIllegal, std::move(message), hint);
  };
  if (spec.sites == 1) {
    for (const char* key : {"wan", "wan_latency"}) {
      if (reader.has(key)) fail(key, "one site has no link to others", "give sites");
    }
    return;
  }
  if (spec.nics_per_node == 0) {
    fail("sites", fmt::format("{} sites without a NIC cannot reach each other", spec.sites),
         "give nics_per_node and nic, or use one site");
  }
  if (spec.nodes % spec.sites != 0) {
    fail("sites", fmt::format("{} nodes are not dealt evenly to {} sites", spec.nodes, spec.sites),
         "as many nodes in each site");
  } else if (spec.nodes_per_site() % spec.nvlink_domain_nodes != 0) {
    fail("sites",
         fmt::format("a site of {} nodes does not hold whole NVLink domains of {}",
                     spec.nodes_per_site(), spec.nvlink_domain_nodes),
         "NVLink does not reach another site");
  }
  if (!(spec.wan_bandwidth.value() > 0)) {
    fail("wan", fmt::format("{} sites without a link between them", spec.sites),
         "the rate of a site's link to the others, like \"100 Gb/s\"");
  }
  if (!(spec.wan_latency.value() > 0)) {
    fail("wan_latency", "the way between sites takes time",
         "one way, like \"10 ms\": half of what ping shows");
  }
}

}  // namespace

void check_shape(ObjectReader& reader, const ClusterSpec& spec) {
  const auto fail = [&](const char* key, std::string message, const char* hint) {
    reader.fail(key, ErrorCode::kIllegal, std::move(message), hint);
  };
  if (spec.nics_per_node == 0 && spec.nodes > spec.nvlink_domain_nodes) {
    fail("nics_per_node", fmt::format("{} nodes without a NIC cannot reach each other", spec.nodes),
         "give nics_per_node and nic, or use one node");
  }
  if (spec.nics_per_node > 0 && !(spec.nic_bandwidth.value() > 0)) {
    fail("nic", fmt::format("{} NICs per node without a bandwidth", spec.nics_per_node),
         "write it like \"200 Gb/s\"");
  }
  if (spec.scale_up != ScaleUp::kNvSwitch && spec.nvlink_domain_nodes > 1) {
    fail("nvlink_domain_nodes",
         fmt::format("an NVLink domain of {} nodes and scale_up {}", spec.nvlink_domain_nodes,
                     name_of(spec.scale_up)),
         "a domain of several nodes needs scale_up nvswitch");
  }
  if (spec.scale_up != ScaleUp::kNvSwitch && spec.nvls) {
    fail("nvls", fmt::format("NVLS and scale_up {}", name_of(spec.scale_up)),
         "reduction in the switch needs scale_up nvswitch");
  }
  if (spec.pod_nodes % spec.nodes_per_leaf_group != 0) {
    fail("pod_nodes",
         fmt::format("a pod of {} nodes does not hold whole leaf groups of {}", spec.pod_nodes,
                     spec.nodes_per_leaf_group),
         "a multiple of nodes_per_leaf_group, or 0 for one pod");
  }
  check_sites(reader, spec);
  check_fabric(reader, spec);
}

}  // namespace stepcast
