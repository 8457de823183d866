// SPDX-License-Identifier: Apache-2.0
#include "plan/better_placement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "layout/scenario.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "predict/prediction.h"

namespace stepcast {
namespace {

constexpr double kShorter = 1e-3;  // by less than this no step is told from another

// Names go with their nodes.
void put_in_order(Fabric& fabric) {
  std::ranges::sort(fabric.devices);
  std::vector<std::size_t> order(fabric.places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return fabric.places[i]; });
  const Fabric stated = fabric;
  for (std::size_t i = 0; i < order.size(); ++i) {
    fabric.places[i] = stated.places[order[i]];
    fabric.hosts[i] = stated.hosts[order[i]];
  }
}

}  // namespace

Result<std::optional<BetterPlacement>> better_placement(const Planner& planner,
                                                        const LayoutChoice& choice, Seconds stated,
                                                        const DataFolders& folders) {
  Scenario scenario = planner.space().base();
  ClusterSpec& spec = scenario.cluster.spec;
  if (is_in_order(spec) || !spec.failed.empty()) return std::nullopt;
  planner.space().put(choice, scenario);
  put_in_order(spec.fabric);
  scenario.cluster.topology = build_topology(spec);
  const auto prediction = predict(scenario, folders);
  if (!prediction) return failure(prediction.error());
  if (prediction->step_time >= (1 - kShorter) * stated) return std::nullopt;
  return BetterPlacement{place_text(spec), prediction->step_time};
}

}  // namespace stepcast
