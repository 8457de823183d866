// SPDX-License-Identifier: Apache-2.0
#include "layout/islands.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "layout/scenario.h"

namespace stepcast {
namespace {

// Parts of the wide area stand between islands: those that fail do not make them different.
bool is_between_sites(const FailedPart& failed) {
  return failed.part.find("wan") != std::string::npos;
}

}  // namespace

std::string why_no_islands(const ClusterSpec& whole, std::int64_t islands) {
  if (whole.of_nodes > 0) return "a cluster that other jobs share";
  if (whole.is_graph) return "a cluster that is given by its graph";
  const Fabric& fabric = whole.fabric;
  if (fabric.kind != FabricKind::kFatTree) return fmt::format("a {}", name_of(fabric.kind));
  if (!fabric.places.empty() || !fabric.devices.empty()) return "ranks that are placed";
  if (fabric.is_hashed()) return "hashed flows";
  if (!whole.other_gpus.empty()) return "GPUs of several kinds";
  for (const FailedPart& failed : whole.failed) {
    if (!is_between_sites(failed)) return fmt::format("{} that is not as the others", failed.part);
  }
  if (whole.gpus != whole.nodes * whole.gpus_per_node) return "a node that is partly used";
  if (whole.nodes % islands != 0) return fmt::format("{} nodes", whole.nodes);
  const std::int64_t nodes = whole.nodes / islands;
  if (nodes % whole.nvlink_domain_nodes != 0) {
    return fmt::format("NVLink domains of {} nodes", whole.nvlink_domain_nodes);
  }
  if (whole.sites % islands != 0 && islands % whole.sites != 0) {
    return fmt::format("{} sites", whole.sites);
  }
  return "";
}

void take_one_island(Scenario& scenario) {
  const std::int64_t islands = scenario.training.outer.islands;
  if (islands < 2 || !why_no_islands(scenario.cluster.spec, islands).empty()) return;
  ClusterSpec one = scenario.cluster.spec;
  scenario.all_islands = std::make_shared<const Cluster>(std::move(scenario.cluster));
  one.nodes /= islands;
  one.gpus /= islands;
  one.sites = one.sites > islands ? one.sites / islands : 1;
  one.failed.clear();
  scenario.cluster.spec = std::move(one);
  scenario.cluster.topology = build_topology(scenario.cluster.spec);
}

}  // namespace stepcast
