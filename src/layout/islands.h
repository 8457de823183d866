// SPDX-License-Identifier: Apache-2.0
// Islands of a cluster, which train apart between outer steps (training.outer).
#pragma once

#include <cstdint>
#include <string>

namespace stepcast {

struct ClusterSpec;
struct Scenario;

// Why the cluster cannot be cut into so many islands that are alike; empty: it can.
std::string why_no_islands(const ClusterSpec& whole, std::int64_t islands);

// Leaves the scenario one island of its cluster, where training has some and the cluster can be
// cut. Leaf groups and trunks that islands share are cut too: each has its part of them.
void take_one_island(Scenario& scenario);

}  // namespace stepcast
