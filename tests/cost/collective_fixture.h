// SPDX-License-Identifier: Apache-2.0
// Clusters for the tests of collectives, built from round figures rather than read from data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "places.h"

namespace stepcast::testing {

inline ClusterSpec machine(GpuArchitecture architecture, double nvlink_GBps, std::int64_t nodes) {
  ClusterSpec spec;
  spec.accelerator.architecture = architecture;
  spec.scale_up_bandwidth = BytesPerSecond(nvlink_GBps * 1e9);
  spec.nodes = nodes;
  spec.gpus_per_node = 8;
  spec.gpus = 8 * nodes;
  spec.nics_per_node = 8;
  spec.pcie_bandwidth = BytesPerSecond(63e9);
  spec.network = Network::kInfiniband;
  return spec;
}

inline ClusterSpec a100(std::int64_t nodes) {
  ClusterSpec spec = machine(GpuArchitecture::kAmpere, 300, nodes);
  spec.nic_bandwidth = BytesPerSecond(25e9);
  spec.pcie_bandwidth = BytesPerSecond(31.5e9);
  spec.cpu = CpuVendor::kAmd;
  return spec;
}

inline ClusterSpec h100(std::int64_t nodes) {
  ClusterSpec spec = machine(GpuArchitecture::kHopper, 450, nodes);
  spec.nic_bandwidth = BytesPerSecond(50e9);
  spec.nvls = true;
  return spec;
}

inline ClusterSpec b200(std::int64_t nodes) {
  ClusterSpec spec = machine(GpuArchitecture::kBlackwell, 900, nodes);
  spec.nic_bandwidth = BytesPerSecond(50e9);
  spec.nvls = true;
  return spec;
}

inline Cluster cluster_of(const ClusterSpec& spec) { return {spec, build_topology(spec)}; }

// `count` devices from `first`, every `stride`-th.
inline std::vector<DeviceId> devices(std::int64_t count, std::int64_t stride = 1,
                                     std::int64_t first = 0) {
  std::vector<DeviceId> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(DeviceId(static_cast<std::int32_t>(first + i * stride)));
  }
  return result;
}

inline std::string shipped_profiles() {
  return source_folder() + "/calibrate/profiles";
}

}  // namespace stepcast::testing
