// SPDX-License-Identifier: Apache-2.0
#include "plan/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cluster/cluster.h"
#include "layout/scenario.h"
#include "plan/lost_part.h"

namespace stepcast {
namespace {

bool always(const ClusterSpec&) { return true; }
bool has_several_nodes(const ClusterSpec& c) { return c.gpus > c.gpus_per_node; }
bool has_several_gpus(const ClusterSpec& c) { return c.gpus > 1 && c.gpus_per_node > 1; }

Error wrong(const std::string& text, std::string message) {
  return {ErrorCode::kBadValue, fmt::format("'{}' {}", text, message), "", "--what-if",
          "a resource and its change, as in nic=+20%, nic=-10% or nic=x2"};
}

}  // namespace

const std::vector<ClusterResource>& cluster_resources() {
  static const std::vector<ClusterResource> all = {
      {"arithmetic", "dense peak of a GPU",
       [](ClusterSpec& c, double factor) {
         c.accelerator.found_as.clear();
         for (auto& [type, rate] : c.accelerator.dense_peak) rate *= factor;
       },
       always, ""},
      {"memory", "bandwidth of a GPU's memory",
       [](ClusterSpec& c, double factor) {
         c.accelerator.found_as.clear();
         c.accelerator.memory_bandwidth *= factor;
       },
       always, ""},
      {"scale_up", "bandwidth between the GPUs of a node",
       [](ClusterSpec& c, double factor) { c.scale_up_bandwidth *= factor; }, has_several_gpus,
       "no GPU has a neighbour in its node"},
      {"scale_up_latency", "latency between the GPUs of a node",
       [](ClusterSpec& c, double factor) { c.scale_up_latency = c.scale_up_latency / factor; },
       has_several_gpus, "no GPU has a neighbour in its node"},
      {"pcie", "bandwidth of a GPU's PCIe link",
       [](ClusterSpec& c, double factor) { c.pcie_bandwidth *= factor; }, always, ""},
      {"nic", "bandwidth of a NIC",
       [](ClusterSpec& c, double factor) { c.nic_bandwidth *= factor; }, has_several_nodes,
       "one node uses no NIC"},
      {"network_latency", "latency from NIC to NIC",
       [](ClusterSpec& c, double factor) {
         c.network_latency = c.network_latency / factor;
         c.switch_latency = c.switch_latency / factor;
       },
       has_several_nodes, "one node uses no NIC"},
  };
  return all;
}

Result<WhatIf> parse_what_if(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return failure(wrong(text, "has no value"));
  const std::string name = text.substr(0, equals);
  std::vector<std::string> known;
  WhatIf out{nullptr, 1};
  for (const ClusterResource& resource : cluster_resources()) {
    known.emplace_back(resource.name);
    if (name == resource.name) out.resource = &resource;
  }
  if (out.resource == nullptr) {
    const std::string near = did_you_mean(name, known);
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is not a resource", name), "",
                    "--what-if", near.empty() ? "one of " + one_of(known) : near});
  }
  std::string value = text.substr(equals + 1);
  const bool percent = value.ends_with('%');
  const bool times = value.starts_with('x');
  if (percent == times) return failure(wrong(text, "says no change"));
  value = percent ? value.substr(0, value.size() - 1) : value.substr(1);
  if (value.starts_with('+')) value.erase(0, 1);
  double number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  out.factor = percent ? 1 + number / 100 : number;
  if (parsed.ec != std::errc() || parsed.ptr != end || !(out.factor >= 0.01) ||
      !(out.factor <= 100)) {
    return failure(wrong(text, "is not a change between a hundredth and a hundredfold"));
  }
  return out;
}

Result<Scenario> apply_what_if(const Scenario& scenario, const WhatIf& what_if) {
  const ClusterSpec& spec = scenario.cluster.spec;
  if (spec.is_graph || spec.accelerator.is_cpu() || !spec.other_accelerators.empty()) {
    return failure({ErrorCode::kNotSupported,
                    fmt::format("a change of cluster '{}' is not supported yet", spec.name), "",
                    "--what-if", "a cluster of GPUs of one kind that is given by its figures"});
  }
  if (spec.of_nodes > 0) {
    return failure({ErrorCode::kNotSupported,
                    "a change of a cluster that other jobs share is not supported yet", "",
                    "--what-if", "leave other_jobs out"});
  }
  if (!what_if.resource->is_there(spec)) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("'{}' has no effect: {}", what_if.resource->name,
                                what_if.resource->why_absent),
                    "", "--what-if", "change a resource that the layout uses"});
  }
  Scenario out = scenario;
  what_if.resource->scale(out.cluster.spec, what_if.factor);
  out.cluster.topology = build_topology(out.cluster.spec);
  return out;
}

Result<Scenario> apply_what_ifs(Result<Scenario> scenario, const std::vector<std::string>& texts,
                                const DataFolders& folders) {
  for (const std::string& text : texts) {
    if (const std::string part = lost_part_of(text); !part.empty()) {
      if (scenario) scenario = without_part(*scenario, part, folders);
      continue;
    }
    const auto change = parse_what_if(text);
    if (!change) return failure(change.error());
    if (scenario) scenario = apply_what_if(*scenario, *change);
  }
  return scenario;
}

}  // namespace stepcast
