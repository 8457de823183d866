// SPDX-License-Identifier: Apache-2.0
// Other jobs on nodes of one cluster: `other_jobs` of a scenario.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stepcast {

class JsonDocument;
class JsonValue;
struct Cluster;
struct OtherJob;
struct Scenario;

// "2-3,6": ascending, each once. Nothing where it says something else.
std::optional<std::vector<std::int64_t>> nodes_of_text(std::string_view text);

// Reads a scenario whose cluster is known; its file need not have one.
using ReadOnCluster = std::function<Result<Scenario>(JsonDocument& document, const Cluster& part)>;

// The jobs of the list, each on a part of the cluster, which keeps the nodes that they leave.
// Errors go to the document of the list, in which these jobs stand.
std::vector<OtherJob> read_other_jobs(const JsonValue& list, JsonDocument& document,
                                      Cluster& cluster, const ReadOnCluster& read);

}  // namespace stepcast
