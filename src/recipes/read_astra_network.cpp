// SPDX-License-Identifier: Apache-2.0
// The network of ASTRA-sim's analytical backend (astra-sim/astra-network-analytical) as a cluster:
// its innermost dimension is a node, the next one the network between nodes, a third one joins
// groups of them. `replay --network` takes any of them, and prices as ASTRA-sim does.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/nearest.h"
#include "recipes/yaml_settings.h"

namespace stepcast {
namespace {

constexpr std::size_t kMostDimensions = 3;
constexpr double kGiBps = 1024.0 * 1024 * 1024;  // ASTRA-sim's GB/s

struct AstraDimension {
  std::string form;
  std::int64_t count = 1;
  double rate = 0;     // of a link each way, bytes/s
  double latency = 0;  // of a link, seconds
};

// One word, one number, or a list of them.
std::vector<SortedJson> items_of(const SortedJson& root, const char* key) {
  if (!root.contains(key)) return {};
  const SortedJson& value = root[key];
  if (!value.is_array()) return {value};
  return {value.begin(), value.end()};
}

std::vector<AstraDimension> dimensions_of(const SortedJson& root, ImportedScenario& out) {
  const auto forms = items_of(root, "topology"), counts = items_of(root, "npus_count");
  const auto rates = items_of(root, "bandwidth"), latencies = items_of(root, "latency");
  const std::size_t size = forms.size();
  if (size == 0 || counts.size() != size || rates.size() != size || latencies.size() != size) {
    out.fail(ErrorCode::kIllegal, "topology",
             fmt::format("has {} dimensions, npus_count {}, bandwidth {} and latency {}", size,
                         counts.size(), rates.size(), latencies.size()),
             "one entry of each for a dimension");
    return {};
  }
  if (size > kMostDimensions) {
    out.fail(ErrorCode::kNotSupported, "topology", fmt::format("has {} dimensions", size),
             "a node, a network, and one that joins groups of nodes; replay --network takes more");
    return {};
  }
  std::vector<AstraDimension> dimensions;
  for (std::size_t d = 0; d < size; ++d) {
    const bool is_whole = counts[d].is_number_integer() && counts[d].get<std::int64_t>() > 0;
    const bool has_numbers = rates[d].is_number() && latencies[d].is_number();
    if (!forms[d].is_string() || !is_whole || !has_numbers || rates[d].get<double>() <= 0 ||
        latencies[d].get<double>() < 0) {
      out.fail(ErrorCode::kBadValue, fmt::format("topology[{}]", d),
               "a form, a count, a bandwidth in GB/s and a latency in ns are a dimension");
      return {};
    }
    dimensions.push_back({forms[d].get<std::string>(), counts[d].get<std::int64_t>(),
                          rates[d].get<double>() * kGiBps, latencies[d].get<double>() * 1e-9});
  }
  return dimensions;
}

void set_rate(ImportedScenario& out, const char* path, double rate) {
  out.set_word(path, fmt::format("{} B/s", rate), "bandwidth");
}

void set_latency(ImportedScenario& out, const char* path, double latency) {
  out.set_word(path, fmt::format("{} s", latency), "latency");
}

void set_node(const AstraDimension& node, ImportedScenario& out) {
  out.set_integer("cluster.gpus_per_node", node.count, "npus_count");
  const double peers = static_cast<double>(std::max<std::int64_t>(1, node.count - 1));
  // A ring of three joins every pair.
  const bool is_mesh = node.form == "FullyConnected" || (node.form == "Ring" && node.count <= 3);
  if (!is_mesh && node.form != "Switch") {
    out.fail(ErrorCode::kNotSupported, "topology[0]",
             fmt::format("'{}' of {} is no node of a cluster", node.form, node.count),
             "Switch or FullyConnected; replay --network takes it");
  }
  out.set_word("cluster.scale_up", is_mesh ? "nvlink_mesh" : "nvswitch", "topology");
  set_rate(out, "cluster.scale_up_bandwidth", node.rate * (is_mesh ? peers : 1));
  set_latency(out, "cluster.scale_up_latency", node.latency * (is_mesh ? 1 : 2));
}

// Each GPU has a NIC: GPUs of one place meet on one switch.
void set_network(const AstraDimension& network, std::int64_t gpus_per_node, ImportedScenario& out) {
  if (network.form != "Switch") {
    out.fail(ErrorCode::kNotSupported, "topology[1]",
             fmt::format("'{}' between nodes is no cluster of keys", network.form),
             "Switch; replay --network takes it");
  }
  out.set_integer("cluster.nics_per_node", gpus_per_node, "npus_count");
  out.set_flag("cluster.rail_optimised", true, "topology");
  set_rate(out, "cluster.nic", network.rate);
  set_latency(out, "cluster.network_latency", 2 * network.latency);
}

void set_upper(const AstraDimension& groups, const AstraDimension& network, ImportedScenario& out) {
  if (groups.form != "Switch" || groups.rate > network.rate) {
    out.fail(ErrorCode::kNotSupported, "topology[2]",
             fmt::format("'{}' of {:.4g} GB/s above {:.4g} GB/s is no cluster of keys", groups.form,
                         groups.rate / kGiBps, network.rate / kGiBps),
             "a Switch that is no faster; replay --network takes it");
  }
  out.set_integer("cluster.nodes_per_leaf_group", network.count, "npus_count");
  out.set_number("cluster.oversubscription", network.rate / groups.rate, "bandwidth");
  set_latency(out, "cluster.switch_latency", std::max(0.0, groups.latency - network.latency));
}

}  // namespace

void read_astra_network(const SortedJson& root, const ImportInput&, ImportedScenario& out) {
  const std::vector<AstraDimension> dimensions = dimensions_of(root, out);
  if (dimensions.empty()) return;
  std::int64_t nodes = 1;
  for (std::size_t d = 1; d < dimensions.size(); ++d) {
    nodes = std::min(capped_product({nodes, dimensions[d].count}), std::int64_t{1} << 20);
  }
  set_node(dimensions[0], out);
  out.set_integer("cluster.nodes", nodes, "npus_count");
  out.set_integer("cluster.nics_per_node", 0, "npus_count");
  if (dimensions.size() > 1) set_network(dimensions[1], dimensions[0].count, out);
  if (dimensions.size() > 2) set_upper(dimensions[2], dimensions[1], out);
  for (const auto& [key, value] : root.items()) {
    if (key != "topology" && key != "npus_count" && key != "bandwidth" && key != "latency") {
      out.warnings.push_back(key + ": is not read");
    }
  }
}

}  // namespace stepcast
