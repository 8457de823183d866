// SPDX-License-Identifier: Apache-2.0
// The regular graph of a ClusterSpec (docs/formats/cluster.md, "The graph").
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cluster/cluster.h"
#include "core/assert.h"

namespace stepcast {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class Builder {
 public:
  explicit Builder(const ClusterSpec& spec) : spec_(spec) {
    // A PCIe switch carries equally many GPUs and NICs wherever their numbers allow; a box without
    // NVLink hangs up to four GPUs on each.
    const std::int64_t nics = spec.nics_per_node;
    switches_ = nics > 0 && spec.scale_up != ScaleUp::kPcie ? std::gcd(spec.gpus_per_node, nics)
                                                            : ceil_div(spec.gpus_per_node, 4);
    rails_ = spec.rail_optimised ? nics : 1;
    const std::int64_t nodes = spec.nodes_per_site();
    site_groups_ = nics > 0 ? ceil_div(nodes, spec.nodes_per_leaf_group) : 0;
    site_pods_ = spec.pod_nodes > 0 ? ceil_div(nodes, spec.pod_nodes) : 1;
  }

  Topology build() {
    const std::int64_t gpus = spec_.gpus_per_node;
    const std::int64_t mesh = spec_.scale_up == ScaleUp::kNvlinkMesh ? gpus * (gpus - 1) / 2 : gpus;
    const std::int64_t vertices = gpus + switches_ + spec_.nics_per_node + 2;
    const std::int64_t cables = mesh + gpus + switches_ + 2 * spec_.nics_per_node;
    const std::int64_t fabric = spec_.sites * (site_groups_ * rails_ + 2 * site_pods_ + 2);
    graph_.reserve(static_cast<std::size_t>(spec_.nodes * vertices + fabric),
                   static_cast<std::size_t>(2 * (spec_.nodes * cables + fabric)));
    add_leaves();
    for (std::int64_t node = 0; node < spec_.nodes; ++node) add_node(node);
    add_upper_tiers();
    join_sites();
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
    const std::int64_t rail = spec_.rail_optimised ? index : 0;
    const std::int64_t nodes = spec_.nodes_per_site();
    const std::int64_t group =
        node / nodes * site_groups_ + node % nodes / spec_.nodes_per_leaf_group;
    const auto leaf = static_cast<std::size_t>(group * rails_ + rail);
    graph_.add_cable(
        {nic, leaves_[leaf], LinkKind::kNic, spec_.nic_bandwidth, spec_.network_latency / 2});
    downlinks_[leaf] += spec_.nic_bandwidth;
  }

  void add_leaves() {
    for (std::int64_t i = 0; i < spec_.sites * site_groups_ * rails_; ++i) {
      leaves_.push_back(add(VertexKind::kLeaf, -1, i));
    }
    downlinks_.resize(leaves_.size());
  }

  // Trunks: a leaf's uplinks as one cable, a pod's spine as one vertex.
  void add_upper_tiers() {
    for (std::int64_t site = 0; site < spec_.sites; ++site) add_upper_tiers(site);
  }

  void add_upper_tiers(std::int64_t site) {
    const std::int64_t count = site_groups_ * rails_;
    const std::int64_t first = site * count;
    if (count == 1) tops_.push_back(leaves_[static_cast<std::size_t>(first)]);
    if (count < 2) return;
    const std::int64_t groups_per_pod =
        site_pods_ > 1 ? spec_.pod_nodes / spec_.nodes_per_leaf_group : site_groups_;
    std::vector<VertexId> spines;
    std::vector<BytesPerSecond> uplinks(static_cast<std::size_t>(site_pods_));
    for (std::int64_t pod = 0; pod < site_pods_; ++pod) {
      spines.push_back(add(VertexKind::kSpine, -1, site * site_pods_ + pod));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto leaf = static_cast<std::size_t>(first + i);
      if (downlinks_[leaf] == BytesPerSecond()) continue;  // a rail of unused GPUs only
      const auto pod = static_cast<std::size_t>(i / rails_ / groups_per_pod);
      const BytesPerSecond trunk = downlinks_[leaf] / spec_.oversubscription;
      graph_.add_cable(
          {leaves_[leaf], spines[pod], LinkKind::kFabric, trunk, spec_.switch_latency});
      uplinks[pod] += trunk;
    }
    tops_.push_back(spines.front());
    if (site_pods_ < 2) return;
    tops_.back() = add(VertexKind::kCore, -1, site);
    for (std::size_t pod = 0; pod < spines.size(); ++pod) {
      graph_.add_cable({spines[pod], tops_.back(), LinkKind::kFabric,
                        uplinks[pod] / spec_.pod_oversubscription, spec_.switch_latency});
    }
  }

  // Each site has one link into the wide area, and half of the way is its own.
  void join_sites() {
    if (spec_.sites < 2) return;
    const VertexId wan = add(VertexKind::kWan, -1, 0);
    for (const VertexId top : tops_) {
      graph_.add_cable({top, wan, LinkKind::kFabric, spec_.wan_bandwidth, spec_.wan_latency / 2});
    }
  }

  const ClusterSpec& spec_;
  Topology graph_;
  std::int64_t switches_ = 0;  // PCIe switches per node
  std::int64_t rails_ = 0;
  std::int64_t site_groups_ = 0;  // of leaves, in each site
  std::int64_t site_pods_ = 1;
  VertexId plane_;              // the NVSwitch plane of the current NVLink domain
  std::vector<VertexId> tops_;  // by site: the switch that all its traffic can reach
  std::vector<VertexId> leaves_;
  std::vector<BytesPerSecond> downlinks_;  // by leaf
};

}  // namespace

Topology build_topology(const ClusterSpec& spec) {
  STEPCAST_ASSERT(spec.gpus_per_node > 0 && spec.gpus > 0 && spec.gpus <= kMaxGpus, "no GPUs");
  const std::int64_t gpus = spec.gpus + spec.failed_gpus;
  STEPCAST_ASSERT(spec.nodes == ceil_div(gpus, spec.gpus_per_node),
                  "as many nodes as hold the GPUs");
  STEPCAST_ASSERT(spec.pod_nodes == 0 || spec.pod_nodes % spec.nodes_per_leaf_group == 0,
                  "a pod holds whole leaf groups");
  STEPCAST_ASSERT(spec.nodes % spec.sites == 0, "sites have equally many nodes");
  if (spec.failed.empty() && spec.other_gpus.empty()) return Builder(spec).build();
  ClusterSpec whole = spec;
  whole.gpus = gpus;
  Topology graph = Builder(whole).build();
  for (const OtherGpus& others : spec.other_gpus) {
    for (const VertexId gpu : gpus_of_part(others.part, graph)) {
      graph.set_kind(gpu, {others.model});
    }
  }
  return spec.failed.empty() ? graph : without_failed(graph, spec.failed);
}

}  // namespace stepcast
