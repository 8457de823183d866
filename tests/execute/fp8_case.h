// SPDX-License-Identifier: Apache-2.0
// Small models whose products may run in fp8: all their sizes are multiples of 16, on two tensor
// ranks too.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "variant_case.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::testing {

struct Fp8Case {
  std::string recipe = "current";  // empty: not in fp8
  VariantCase layout = {};
  std::string cluster = "local";
};

inline Scenario fp8_scenario(const Fp8Case& c) {
  VariantCase layout = c.layout;
  layout.layers = 2;
  layout.kv_heads = 2;
  nlohmann::json document = nlohmann::json::parse(text_of(layout));
  document["model"]["hidden"] = document["model"]["ffn"] = 64;
  document["cluster"]["base"] = c.cluster;
  if (!c.recipe.empty()) {
    document["training"]["precision"] = "fp8";
    document["training"]["fp8_recipe"] = c.recipe;
  }
  return scenario_from(document.dump());
}

}  // namespace stepcast::testing
