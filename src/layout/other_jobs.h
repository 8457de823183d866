// SPDX-License-Identifier: Apache-2.0
// Other jobs on nodes of one cluster: `other_jobs` of a scenario.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/result.h"

namespace stepcast {

class JsonDocument;
class JsonValue;
struct Cluster;
struct OtherJob;
struct Scenario;

// Reads a scenario whose cluster is known; its file need not have one.
using ReadOnCluster = std::function<Result<Scenario>(JsonDocument& document, const Cluster& part)>;

// The jobs of the list, each on a part of the cluster, which keeps the nodes that they leave.
// Errors go to the document of the list, in which these jobs stand.
std::vector<OtherJob> read_other_jobs(const JsonValue& list, JsonDocument& document,
                                      Cluster& cluster, const ReadOnCluster& read);

}  // namespace stepcast
