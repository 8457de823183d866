// SPDX-License-Identifier: Apache-2.0
#include "program/reference_scenario.h"

#include <cstring>

#include "core/json_tree.h"
#include "layout/keys.h"

namespace stepcast {

SortedJson reference_scenario(SortedJson out) {
  out["cluster"] = {{"base", "local"}, {"gpus", 1}};
  out["layout"] = {{"micro_batch", 1}};
  // Keys that only a framework decides fall back to the rules of `native`.
  for (const Key& key : training_keys()) {
    if (key.of_framework) out["training"].erase(key.path + std::strlen("training."));
  }
  for (const char* key : {"grad_precision", "reduce_precision", "no_sync", "attention",
                          "attention_kernel", "fp8_recipe", "fp8_params", "fp8_attention",
                          "first_layers_16_bits", "last_layers_16_bits"}) {
    out["training"].erase(key);
  }
  out["training"]["framework"] = "native";
  out["training"]["precision"] = "fp32";
  out.erase("profile");
  return out;
}

}  // namespace stepcast
