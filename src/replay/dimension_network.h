// SPDX-License-Identifier: Apache-2.0
// The network that ASTRA-sim's analytical backend takes: dimensions of rings, switches and full
// meshes, the first one innermost, with algorithms in closed form (docs/replay.md, "A network file
// of ASTRA-sim").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "replay/graph_network.h"

namespace stepcast {

enum class DimensionForm { kRing, kSwitch, kFullyConnected };

struct NetworkDimension {
  DimensionForm form = DimensionForm::kRing;
  std::int64_t ranks = 1;
  BytesPerSecond bandwidth;  // of a link, one way; ASTRA-sim's GB are 2^30 bytes
  Seconds latency;           // of a link; a switch is two links away from everybody
};

enum class DimensionAlgorithm { kRing, kDirect, kHalving };

// The keys of ASTRA-sim's system file that decide how long something takes.
struct SystemSettings {
  std::int64_t chunks = 1;          // preferred-dataset-splits: a collective is cut into so many
  std::int64_t chunks_at_once = 1;  // active-chunks-per-dimension
  Seconds endpoint_delay;           // of each message
  BytesPerSecond memory;            // local-mem-bw; 0: adding up takes no time
  double peak_flops = 0;            // peak-perf; 0: not stated
  bool roofline = false;            // roofline-enabled: nodes compute as long as those two allow
  bool replay_alone = false;        // replay-only: all nodes last as their file states
  // By dimension; those behind the last take the last one's.
  std::vector<DimensionAlgorithm> all_reduce = {DimensionAlgorithm::kRing};
  std::vector<DimensionAlgorithm> all_gather = {DimensionAlgorithm::kRing};
  std::vector<DimensionAlgorithm> reduce_scatter = {DimensionAlgorithm::kRing};
  std::vector<DimensionAlgorithm> all_to_all = {DimensionAlgorithm::kDirect};
  std::vector<std::string> not_read;  // keys of the file that have no meaning here
};

struct DimensionFile {
  std::string name;
  std::vector<NetworkDimension> dimensions;
  std::vector<std::string> not_read = {};  // keys of the file that have no meaning here
  std::int64_t ranks() const;
};

// `network`: the YAML (or JSON) of topology, npus_count, bandwidth in GB/s and latency in ns.
// `system`: ASTRA-sim's system file; empty: none. A key that looks like a known one is an error.
Result<DimensionFile> read_network_file(const std::string& file);
Result<SystemSettings> read_system_file(const std::string& file);

std::unique_ptr<GraphNetwork> dimension_network(DimensionFile file, SystemSettings system);

}  // namespace stepcast
