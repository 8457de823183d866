// SPDX-License-Identifier: Apache-2.0
// One kind of GPU, as its data sheet and driver state it, or a core of this machine
// (cluster/local_cluster.h). Data: topologies/accelerators/*.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/gpu_architecture.h"
#include "core/data_type.h"
#include "core/quantity.h"
#include "core/result.h"

namespace stepcast {

class JsonValue;

struct Accelerator {
  std::string name;
  std::string title;     // "NVIDIA A100-SXM4-80GB"
  std::string found_as;  // what find_accelerator() finds it by; empty: it is written out
  GpuArchitecture architecture = GpuArchitecture::kOther;
  std::int64_t compute_capability = 0;  // 80, 90, 100; 0 when not NVIDIA
  std::int64_t sm_count = 0;
  ByteCount memory = 0;  // what the driver reports as total
  BytesPerSecond memory_bandwidth;
  double power_w = 0;
  std::map<DataType, FlopsPerSecond> dense_peak;  // by input precision, without sparsity
  std::vector<std::string> pci_devices;           // its numbers on the PCI bus: "0x2330"
  std::string profile;  // the shipped profile that prices it; empty: data sheet
  std::vector<std::string> sources;
  std::string notes;
  // For processors, where one device is one rank's process:
  std::int64_t cores = 0;        // cores of the whole machine; 0: not stated
  ByteCount machine_memory = 0;  // this machine's, which its ranks share; 0: another machine

  bool is_cpu() const { return architecture == GpuArchitecture::kCpu; }
  std::optional<FlopsPerSecond> peak(DataType type) const;
};

// An object of docs/formats/cluster.md, "Accelerators". Errors go to the value's document.
Accelerator read_accelerator(const JsonValue& value);

// Finds it by name, in `topologies_folder`/accelerators/, or by path when `name` is one (it has a
// '/' or ends in .json). "cpu" is a core of this machine.
Result<Accelerator> find_accelerator(const std::string& name, const std::string& topologies_folder);
Result<std::vector<Accelerator>> list_accelerators(const std::string& topologies_folder);

}  // namespace stepcast
