// SPDX-License-Identifier: Apache-2.0
// The way back: writes a scenario as the file that would give it, with every default.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layout/keys.h"
#include "model/import_native.h"

namespace stepcast {
namespace {

using nlohmann::json;

template <class Value>
std::string with_unit(Value value, double unit, const char* name) {
  return fmt::format("{} {}", value.value() / unit, name);
}

json to_json(const ClusterSpec& c) {
  if (c.name == "local") {
    return {{"base", c.name}, {"gpus", c.gpus}, {"shared_cores", c.shared_cores}};
  }
  // An irregular cluster is its graph, so only its name is written.
  const bool regular = c.scale_up_bandwidth.value() > 0;
  if (!regular) return {{"base", c.name}};
  json out = {{"accelerator", c.accelerator.name},
              {"gpus", c.gpus},
              {"gpus_per_node", c.gpus_per_node},
              {"nvlink_domain_nodes", c.nvlink_domain_nodes},
              {"scale_up", name_of(c.scale_up)},
              {"scale_up_bandwidth", with_unit(c.scale_up_bandwidth, 1e9, "GB/s")},
              {"scale_up_latency", with_unit(c.scale_up_latency, 1e-6, "us")},
              {"nvls", c.nvls},
              {"pcie", with_unit(c.pcie_bandwidth, 1e9, "GB/s")},
              {"nics_per_node", c.nics_per_node},
              {"network_latency", with_unit(c.network_latency, 1e-6, "us")},
              {"switch_latency", with_unit(c.switch_latency, 1e-6, "us")},
              {"rail_optimised", c.rail_optimised},
              {"nodes_per_leaf_group", c.nodes_per_leaf_group},
              {"oversubscription", c.oversubscription},
              {"pod_nodes", c.pod_nodes},
              {"pod_oversubscription", c.pod_oversubscription},
              {"cpu", name_of(c.cpu)}};
  if (c.shared_cores > 0) out["shared_cores"] = c.shared_cores;
  if (c.name != "inline") out["base"] = c.name;
  if (c.nics_per_node > 0) out["nic"] = with_unit(c.nic_bandwidth, 1e9 / 8, "Gb/s");
  if (c.network) out["network"] = name_of(*c.network);
  return out;
}

}  // namespace

json to_json(const Scenario& scenario) {
  json out = {{"stepcast", 1},
              {"model", to_native_json(scenario.model)},
              {"cluster", to_json(scenario.cluster.spec)},
              {"training", write_keys(scenario, training_keys())},
              {"layout", write_keys(scenario, layout_keys())}};
  if (!scenario.profile.empty()) out["profile"] = scenario.profile;
  if (scenario.run) out["run"] = to_json(*scenario.run);
  return out;
}

}  // namespace stepcast
