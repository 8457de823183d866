// SPDX-License-Identifier: Apache-2.0
#include "program/reference_scenario.h"

#include <nlohmann/json.hpp>

namespace stepcast {

std::string reference_scenario(const std::string& scenario) {
  auto out = nlohmann::json::parse(scenario);
  out["cluster"] = {{"base", "local"}, {"gpus", 1}};
  out["layout"] = {{"micro_batch", 1}};
  for (const char* key :
       {"grad_precision", "reduce_precision", "bucket_elements", "gather_bucket_elements",
        "prefetch_units", "host_sync_after_p2p", "host_sync_at_batch",
        "fused_gradient_accumulation", "scatter_gather_p2p", "no_sync", "attention"}) {
    out["training"].erase(key);
  }
  out["training"]["framework"] = "native";
  out["training"]["precision"] = "fp32";
  out.erase("profile");
  return out.dump();
}

}  // namespace stepcast
