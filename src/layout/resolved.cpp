// SPDX-License-Identifier: Apache-2.0
// The way back: writes a scenario as the file that would give it, with every default.

#include "cluster/write_cluster.h"
#include "core/json_tree.h"
#include "layout/keys.h"
#include "layout/scenario.h"
#include "model/import_native.h"

namespace stepcast {

SortedJson to_json(const Scenario& scenario) {
  SortedJson out = {
      {"stepcast", 1},
      {"model", to_native_json(scenario.model)},
      {"cluster", to_json(scenario.fabric ? *scenario.fabric : scenario.whole_cluster())},
      {"training", write_keys(scenario, training_keys())},
      {"layout", write_keys(scenario, layout_keys())}};
  if (!scenario.profile.empty()) out["profile"] = scenario.profile;
  if (const NcclSettings& nccl = scenario.cluster.spec.nccl; !nccl.empty()) {
    out["software"] = to_json(nccl);
  }
  for (const OtherJob& other : scenario.other_jobs) {
    SortedJson job = to_json(*other.scenario);
    for (const char* of_all : {"cluster", "software"}) job.erase(of_all);
    out["other_jobs"].push_back({{"nodes", other.nodes}, {"scenario", std::move(job)}});
  }
  if (scenario.run) out["run"] = to_json(*scenario.run);
  return out;
}

}  // namespace stepcast
