// SPDX-License-Identifier: Apache-2.0
// Makes one resource of a cluster faster or slower, which shows what a forecast is sensitive to.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

struct ClusterSpec;
struct DataFolders;
struct Scenario;

struct ClusterResource {
  const char* name;   // "nic"
  const char* title;  // "bandwidth of a NIC"
  // Multiplies its speed: rates grow, times shrink.
  void (*scale)(ClusterSpec& cluster, double factor);
  // The cluster has any of it.
  bool (*is_there)(const ClusterSpec& cluster);
  const char* why_absent;  // where it has none, "one node uses no NIC"
};
const std::vector<ClusterResource>& cluster_resources();

struct WhatIf {
  const ClusterResource* resource;
  double factor;
};

// "nic=+20%", "nic=-10%" or "nic=x2".
Result<WhatIf> parse_what_if(const std::string& text);

// Errors: the cluster's graph was not built from figures (imported or irregular), or it has none of
// the resource.
Result<Scenario> apply_what_if(const Scenario& scenario, const WhatIf& what_if);

// Several changes, one after the other, of a scenario that was just read, `fail=PART` among them
// (plan/lost_part.h). A change that cannot be read is told before what is wrong with the scenario.
Result<Scenario> apply_what_ifs(Result<Scenario> scenario, const std::vector<std::string>& texts,
                                const DataFolders& folders);

}  // namespace stepcast
