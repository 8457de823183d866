// SPDX-License-Identifier: Apache-2.0
// A machine as NCCL and RCCL see it: the XML that NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE
// reads (NVIDIA/nccl, src/graph/xml.cc and topo.cc; ROCm/rccl has xGMI beside NVLink). It becomes
// an irregular cluster: one such machine, or several that switches join. Tables of the driver's
// tools are read in the same way (cluster/topology_matrix.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

class ObjectReader;

// Whether a base is such a file, by its name.
bool is_machine_file(std::string_view base);

// NCCL itself takes 256 elements of a machine.
inline constexpr std::int64_t kMostTopologyBytes = std::int64_t{4} << 20;

// The document of an irregular cluster (docs/formats/cluster.md), made of the text of the file
// `base` and of the keys beside it that the file does not say: "accelerator", "nodes", "network",
// "network_latency", "scale_up_bandwidth", "rail_optimised", and of a table "pcie", "nic",
// "nics_per_node" and "cpu". What is wrong with the keys goes to
// the reader's document, what is wrong with the file is an error.
Result<SortedJson> cluster_of_machines(std::string_view text, const std::string& base,
                                       ObjectReader& reader, const std::string& topologies_folder);

}  // namespace stepcast
