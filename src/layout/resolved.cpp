// SPDX-License-Identifier: Apache-2.0
// The way back: writes a scenario as the file that would give it, with every default.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layout/choices.h"
#include "model/import_native.h"

namespace stepcast {
namespace {

using nlohmann::json;

json to_json(const Training& t, const FrameworkRules& rules) {
  json out = {{"global_batch", t.global_batch},
              {"sequence_length", t.sequence_length},
              {"precision", name_of(t.precision)},
              {"attention", name_of(t.attention)},
              {"optimizer", t.optimizer},
              {"framework", name_of(t.framework)},
              {"grad_precision", name_of(t.grad_precision)},
              {"reduce_precision", name_of(t.reduce_precision)},
              {"grad_clip", name_of(t.grad_clip)},
              {"no_sync", t.no_sync},
              {"compile", t.compile},
              {"cuda_graphs", t.cuda_graphs},
              {"mode", name_of(t.mode)},
              {"bucket_elements", rules.bucket_elements},
              {"gather_bucket_elements", rules.gather_bucket_elements},
              {"prefetch_units", rules.prefetch_units},
              {"host_sync_after_p2p", rules.host_sync_after_p2p},
              {"host_sync_at_batch", rules.host_sync_at_batch},
              {"fused_gradient_accumulation", rules.fused_gradient_accumulation},
              {"scatter_gather_p2p", rules.scatter_gather_p2p}};
  if (t.trains_adapters()) out["lora_rank"] = t.lora_rank;
  if (!t.software.empty()) out["software"] = t.software;
  return out;
}

json to_json(const Recompute& r) {
  json out = {{"mode", name_of(r.mode)}};
  if (r.mode == RecomputeMode::kNone) return out;
  if (r.layers > 0) out["layers"] = r.layers;
  out["every"] = r.every;
  if (r.mode == RecomputeMode::kSelective) out["modules"] = r.modules;
  return out;
}

std::string schedule_text(const Layout& layout) {
  const std::string name = name_of(layout.schedule);
  return layout.schedule == ScheduleKind::kFile ? name + ":" + layout.schedule_file : name;
}

json to_json(const Layout& l, bool experts) {
  json out = {{"tp", l.tp},
              {"cp", l.cp},
              {"pp", l.pp},
              {"dp", l.dp},
              {"micro_batch", l.micro_batch},
              {"schedule", schedule_text(l)},
              {"virtual_stages", l.virtual_stages},
              {"zero", l.zero},
              {"sequence_parallel", l.sequence_parallel},
              {"recompute", to_json(l.recompute)},
              {"order", l.order},
              {"overlap",
               {{"grad_reduce", l.overlap.grad_reduce},
                {"param_gather", l.overlap.param_gather},
                {"tp", l.overlap.tp},
                {"pp", l.overlap.pp}}},
              {"offload",
               {{"optimizer", l.offload.optimizer},
                {"parameters", l.offload.parameters},
                {"activations", l.offload.activations}}}};
  if (experts) {
    out["ep"] = l.ep;
    out["etp"] = l.etp;
  }
  if (l.shard_group > 0) {
    out["shard_group"] = l.shard_group;
  } else {
    out["shard_group"] = "all";
  }
  if (l.stage_layers.empty()) {
    out["account_for_embedding"] = l.account_for_embedding;
    out["account_for_loss"] = l.account_for_loss;
  } else {
    out["stage_layers"] = l.stage_layers;
  }
  return out;
}

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
  if (!c.network.empty()) out["network"] = c.network;
  return out;
}

}  // namespace

json to_json(const Scenario& scenario) {
  json out = {{"stepcast", 1},
              {"model", to_native_json(scenario.model)},
              {"cluster", to_json(scenario.cluster.spec)},
              {"training", to_json(scenario.training, scenario.rules)},
              {"layout", to_json(scenario.layout, scenario.model.moe.has_value())}};
  if (!scenario.profile.empty()) out["profile"] = scenario.profile;
  if (scenario.run) out["run"] = to_json(*scenario.run);
  return out;
}

}  // namespace stepcast
