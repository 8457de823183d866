// SPDX-License-Identifier: Apache-2.0
// The regular graph of a ClusterSpec (docs/formats/cluster.md, "The graph").
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "cluster/build_fabric.h"
#include "cluster/cluster.h"
#include "core/assert.h"

namespace stepcast {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class Builder {
 public:
  explicit Builder(const ClusterSpec& spec) : spec_(spec), fabric_(spec, graph_) {
    // A PCIe switch carries equally many GPUs and NICs wherever their numbers allow; a box without
    // NVLink hangs up to four GPUs on each.
    const std::int64_t nics = spec.nics_per_node;
    switches_ = nics > 0 && spec.scale_up != ScaleUp::kPcie ? std::gcd(spec.gpus_per_node, nics)
                                                            : ceil_div(spec.gpus_per_node, 4);
  }

  Topology build() {
    const std::int64_t gpus = spec_.gpus_per_node;
    const std::int64_t mesh = spec_.scale_up == ScaleUp::kNvlinkMesh ? gpus * (gpus - 1) / 2 : gpus;
    const std::int64_t vertices = gpus + switches_ + spec_.nics_per_node + 2;
    const std::int64_t cables =
        mesh + gpus + switches_ + (1 + spec_.fabric.planes) * spec_.nics_per_node;
    const std::int64_t fabric = fabric_.switches();
    graph_.reserve(static_cast<std::size_t>(spec_.nodes * vertices + fabric),
                   static_cast<std::size_t>(2 * (spec_.nodes * cables + fabric)));
    fabric_.add_switches();
    for (std::int64_t node = 0; node < spec_.nodes; ++node) add_node(node);
    fabric_.join_switches();
    return std::move(graph_);
  }

 private:
  VertexId add(VertexKind kind, std::int64_t node, std::int64_t index) {
    return graph_.add_vertex(
        {kind, static_cast<std::int32_t>(node), static_cast<std::int32_t>(index)});
  }

  void add_node(std::int64_t node) {
    const std::int64_t gpus =
        std::min(spec_.gpus_per_node, spec_.gpus - node * spec_.gpus_per_node);
    std::vector<VertexId> devices;
    for (std::int64_t i = 0; i < gpus; ++i) devices.push_back(add(VertexKind::kGpu, node, i));
    add_scale_up(node, devices);

    const VertexId host = add(VertexKind::kHost, node, 0);
    std::vector<VertexId> switches;
    for (std::int64_t i = 0; i < gpus; ++i) {
      const std::int64_t own = i * switches_ / spec_.gpus_per_node;
      if (own == static_cast<std::int64_t>(switches.size())) {
        switches.push_back(add(VertexKind::kPcieSwitch, node, own));
        graph_.add_cable({host, switches.back(), LinkKind::kHostBus, spec_.pcie_bandwidth, {}});
      }
      graph_.add_cable({devices[static_cast<std::size_t>(i)], switches.back(), LinkKind::kPcie,
                        spec_.pcie_bandwidth, pcie_latency()});
    }
    for (std::int64_t i = 0; i < spec_.nics_per_node; ++i) {
      const std::int64_t own = i * switches_ / spec_.nics_per_node;
      if (own < static_cast<std::int64_t>(switches.size())) {
        add_nic(node, i, switches[static_cast<std::size_t>(own)]);
      }
    }
  }

  void add_scale_up(std::int64_t node, const std::vector<VertexId>& devices) {
    if (spec_.scale_up == ScaleUp::kNvSwitch) {
      const std::int64_t span = spec_.nvlink_domain_nodes;
      if (node % span == 0) {
        plane_ = add(VertexKind::kNvSwitch, span == 1 ? node : -1, span == 1 ? 0 : node / span);
      }
      for (const VertexId device : devices) {
        graph_.add_cable({device, plane_, LinkKind::kNvlink, spec_.scale_up_bandwidth,
                          spec_.scale_up_latency / 2});
      }
    }
    if (spec_.scale_up == ScaleUp::kNvlinkMesh) {
      const double peers = static_cast<double>(spec_.gpus_per_node - 1);
      for (std::size_t i = 0; i < devices.size(); ++i) {
        for (std::size_t j = i + 1; j < devices.size(); ++j) {
          graph_.add_cable({devices[i], devices[j], LinkKind::kNvlink,
                            spec_.scale_up_bandwidth / peers, spec_.scale_up_latency});
        }
      }
    }
  }

  // Half of the way between two GPUs of a box without NVLink; elsewhere the PCIe part of a network
  // path is within `network_latency`.
  Seconds pcie_latency() const {
    return spec_.scale_up == ScaleUp::kPcie ? spec_.scale_up_latency / 2 : Seconds();
  }

  void add_nic(std::int64_t node, std::int64_t index, VertexId pcie_switch) {
    const VertexId nic = add(VertexKind::kNic, node, index);
    graph_.add_cable({nic, pcie_switch, LinkKind::kPcie, spec_.pcie_bandwidth, {}});
    fabric_.join(nic, node, index);
  }

  const ClusterSpec& spec_;
  Topology graph_;
  FabricBuilder fabric_;
  std::int64_t switches_ = 0;  // PCIe switches per node
  VertexId plane_;             // the NVSwitch plane of the current NVLink domain
};

// Ranks in their order, and ways by their hash, where the cluster says so.
Topology with_flows(Topology graph, const ClusterSpec& spec) {
  const Fabric& fabric = spec.fabric;
  if (fabric.is_hashed()) graph.set_flows({fabric.ecmp_seed, fabric.ecmp_flows});
  if (!fabric.devices.empty()) {
    std::vector<VertexId> order;
    for (const std::int32_t gpu : fabric.devices) {
      order.push_back(graph.gpus()[static_cast<std::size_t>(gpu)]);
    }
    graph.set_device_order(std::move(order));
  }
  return graph;
}

}  // namespace

Topology build_topology(const ClusterSpec& spec) {
  STEPCAST_ASSERT(spec.gpus_per_node > 0 && spec.gpus > 0 && spec.gpus <= kMaxGpus, "no GPUs");
  const std::int64_t gpus = spec.gpus + spec.failed_gpus;
  STEPCAST_ASSERT(spec.nodes == ceil_div(gpus, spec.gpus_per_node),
                  "as many nodes as hold the GPUs");
  STEPCAST_ASSERT(spec.pod_nodes == 0 || spec.pod_nodes % spec.nodes_per_leaf_group == 0,
                  "a pod holds whole leaf groups");
  if (spec.failed.empty() && spec.other_gpus.empty())
    return with_flows(Builder(spec).build(), spec);
  ClusterSpec whole = spec;
  whole.gpus = gpus;
  Topology graph = with_flows(Builder(whole).build(), spec);
  for (const OtherGpus& others : spec.other_gpus) {
    for (const VertexId gpu : gpus_of_part(others.part, graph)) {
      graph.set_kind(gpu, {others.model});
    }
  }
  return spec.failed.empty() ? graph : without_failed(graph, spec.failed);
}

}  // namespace stepcast
