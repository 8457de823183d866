// SPDX-License-Identifier: Apache-2.0
// Reading clusters in tests: from the JSON text of a scenario's "cluster".
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cluster/cluster.h"
#include "core/json.h"
#include "places.h"

namespace stepcast::testing {

inline const std::string kTopologies = source_folder() + "/topologies";

struct ReadResult {
  Cluster cluster;
  Errors errors;
};

// `json` is the value of "cluster", so that paths start with it as in a scenario.
inline ReadResult read(const std::string& json) {
  auto document = JsonDocument::parse("{\"cluster\": " + json + "}", "scenario.json");
  if (!document) return {{}, document.error()};
  ObjectReader reader((*document)->root());
  ReadResult out;
  out.cluster = read_cluster(*reader.required("cluster"), kTopologies);
  out.errors = (*document)->errors();
  return out;
}

inline Cluster cluster_from(const std::string& json) {
  ReadResult out = read(json);
  EXPECT_TRUE(out.errors.empty()) << to_string(out.errors);
  return std::move(out.cluster);
}

}  // namespace stepcast::testing
