// SPDX-License-Identifier: Apache-2.0
// A cluster: its node type, how many nodes, its fabric, and the graph built from them.
// Data: topologies/clusters/*.json (docs/formats/cluster.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/accelerator.h"
#include "cluster/fabric.h"
#include "cluster/failed_parts.h"
#include "cluster/nccl_settings.h"
#include "cluster/topology.h"
#include "core/result.h"

namespace stepcast {

class JsonValue;

enum class ScaleUp { kNvSwitch, kNvlinkMesh, kPcie };  // how the GPUs of a node reach each other
enum class Network { kInfiniband, kRoce, kEfa, kTcp, kSlingshot, kNone };
enum class CpuVendor { kIntel, kAmd, kNvidia, kOther };

// GPUs that are not of the cluster's accelerator: "node1" or "node0/gpu3".
struct OtherGpus {
  std::string part;
  std::int32_t model;  // Cluster::accelerator() takes it
};

// Everything the graph is built from; the overrides of a scenario change these.
struct ClusterSpec {
  std::string name;
  std::string title;
  std::string reading;  // "X is read as Y", where it was asked for by another name
  // Who lets it, whose price is asked for; kNotForRent: nobody does; empty: several do.
  std::string provider;
  std::string base;       // by which it is found again: a name or a path; empty: it is written out
  bool is_graph = false;  // given by its graph, from which the figures below are derived
  Accelerator accelerator;
  std::vector<OtherGpus> other_gpus = {};       // of the graph that the figures below describe
  std::vector<Accelerator> other_accelerators;  // that GPUs of the graph are of, each once
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  std::int64_t gpus = 8;                 // in use; the last node may be partly used
  std::int64_t nvlink_domain_nodes = 1;  // 18 for a GB200 NVL72 rack
  ScaleUp scale_up = ScaleUp::kNvSwitch;
  BytesPerSecond scale_up_bandwidth;  // per GPU and direction
  Seconds scale_up_latency;
  bool nvls = false;                       // in-switch reduction
  std::int64_t nics_per_node = 8;          // 0: a single node
  BytesPerSecond nic_bandwidth;            // per NIC and direction
  Seconds network_latency;                 // NIC to NIC, one switch hop
  Seconds switch_latency;                  // each further tier of switches, with its cable
  BytesPerSecond pcie_bandwidth;           // per GPU and direction
  bool rail_optimised = true;              // NIC i of each node on leaf i of the pod
  std::int64_t nodes_per_leaf_group = 32;  // nodes under one set of leaves (a scalable unit)
  double oversubscription = 1;             // leaf downlink : uplink
  std::int64_t pod_nodes = 0;              // nodes under one spine layer; 0: all
  double pod_oversubscription = 1;         // spine : core
  std::int64_t sites = 1;                  // with equally many nodes each, in order
  BytesPerSecond wan_bandwidth;            // of a site and direction, between sites
  Seconds wan_latency;                     // one way, from a site's top switch to another's
  Fabric fabric = {};
  std::int64_t of_nodes = 0;               // of a larger cluster, whose graph it has (part_of())
  CpuVendor cpu = CpuVendor::kIntel;
  ByteCount host_memory = 0;             // of a node; 0: not stated
  BytesPerSecond host_memory_bandwidth;  // of a node, all sockets; 0: host_of() has it
  std::int64_t host_cores = 0;           // of a node; 0: host_of() has them
  BytesPerSecond disk_read, disk_write;  // of all local NVMe disks of a node; 0: it has none
  std::optional<Network> network;        // which curves hold between nodes; empty: not stated
  std::vector<FailedPart> failed;        // of the graph that the figures above describe
  std::int64_t failed_gpus = 0;          // of these, and not among `gpus`
  std::int64_t shared_cores = 0;         // that all devices compute on; 0: each computes alone
  // Standard deviations, as parts of the mean: of what a pass takes from one time to the next, and
  // of what it takes on one device and on another.
  double jitter = 0, spread = 0;
  NcclSettings nccl = {};  // a scenario's `software` says it
  std::vector<std::string> sources;
  std::string notes;

  std::int64_t nodes_per_site() const { return (of_nodes > 0 ? of_nodes : nodes) / sites; }
  // GPUs that reach each other without the network, if that many are in use.
  std::int64_t gpus_per_domain() const { return gpus_per_node * nvlink_domain_nodes; }
  // Whether there are more devices than cores to compute on.
  bool takes_turns() const { return shared_cores > 0 && gpus > shared_cores; }
};

struct Cluster {
  ClusterSpec spec;
  Topology topology;

  std::int64_t gpus() const { return spec.gpus; }
  // That GPUs of this model are (GpuKind).
  const Accelerator& accelerator(std::int32_t model) const {
    return model == 0 ? spec.accelerator
                      : spec.other_accelerators[static_cast<std::size_t>(model) - 1];
  }
  const Accelerator& accelerator(DeviceId device) const {
    return accelerator(topology.kind(device).model);
  }
  std::int64_t node_of(DeviceId device) const {
    return topology.vertices()[topology.gpus()[device.index()].index()].node;
  }
  // All of its accelerators, its own first.
  std::vector<const Accelerator*> accelerators() const {
    std::vector<const Accelerator*> out = {&spec.accelerator};
    for (const Accelerator& other : spec.other_accelerators) out.push_back(&other);
    return out;
  }
  // GPUs that reach each other without the network: a node, or an NVLink domain of several.
  std::int64_t domain_of(DeviceId device) const {
    return node_of(device) / spec.nvlink_domain_nodes;
  }
  std::int64_t site_of(DeviceId device) const { return node_of(device) / spec.nodes_per_site(); }
};

inline constexpr const char* kLocalCluster = "local";     // the base that is this machine
inline constexpr const char* kUnnamedCluster = "inline";  // written out without a name
inline constexpr const char* kNotForRent = "none";        // its provider
inline constexpr const char* kUnnamedGraph = "irregular";
inline constexpr std::int64_t kMaxGpus = 131072;  // the largest clusters planned today

const char* name_of(ScaleUp scale_up);
const char* name_of(Network network);
std::optional<Network> network_named(std::string_view name);  // empty: there is none of that name
// Clusters of that network state this for NIC to NIC over one switch (topologies/clusters). It is
// InfiniBand's if none is stated.
Seconds usual_latency(std::optional<Network> network);
bool speaks_verbs(std::optional<Network> network);  // InfiniBand's interface, over whatever wires
const char* name_of(CpuVendor cpu);

// The processors of a node: as the cluster states them, or as its vendor's usual ones are.
struct NodeHost {
  BytesPerSecond memory_bandwidth;
  std::int64_t cores;
  BytesPerSecond core_rate;  // of memory, that one core reads and writes by itself
};
NodeHost host_of(const ClusterSpec& spec);

// The graph of `spec` without its failed parts: scale-up, PCIe, NICs, leaves, spines
// (docs/formats/cluster.md, "The graph").
Topology build_topology(const ClusterSpec& spec);

// Scenario value: {"base": NAME|PATH|"local", "nodes"|"gpus": N, overrides...}, a full inline
// topology, or text "dgx-h100x8" (x nodes). Errors go to the value's document; the cluster is
// meaningful only without any. `topologies_folder` holds clusters/ and accelerators/.
Cluster read_cluster(const JsonValue& value, const std::string& topologies_folder);

// Lists the shipped clusters by name, each with its smallest node count.
Result<std::vector<ClusterSpec>> list_clusters(const std::string& topologies_folder);

}  // namespace stepcast
