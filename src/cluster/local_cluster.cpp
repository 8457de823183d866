// SPDX-License-Identifier: Apache-2.0
#include "cluster/local_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/accelerator.h"
#include "cluster/cluster.h"
#include "cluster/cluster_fields.h"
#include "cluster/gpu_architecture.h"
#include "cluster/topology.h"
#include "core/data_type.h"
#include "core/error.h"
#include "core/id.h"
#include "core/json.h"

namespace stepcast {
namespace {

// Cores since Haswell and Zen 2 issue two vector operations per cycle.
constexpr double kPipes = 2;
constexpr double kAssumedClockHz = 2e9;  // where the system states none

// One core of a server streams at least this from memory, whatever the others do: STREAM on one
// core of Xeon and EPYC machines gives 10 to 20 GB/s.
constexpr BytesPerSecond kCoreBandwidth(10e9);
// A message through shared memory is copied in and out.
constexpr double kCopies = 2;
// One process hands over to another that polls for it; one that sleeps wakes up later.
constexpr Seconds kHandOver(1e-6);

CpuVendor vendor_of(const std::string& vendor) {
  if (vendor == "GenuineIntel") return CpuVendor::kIntel;
  if (vendor == "AuthenticAMD") return CpuVendor::kAmd;
  return CpuVendor::kOther;
}

}  // namespace

Accelerator cpu_accelerator(const MachineFacts& machine, std::int64_t ranks) {
  Accelerator out;
  out.name = out.found_as = "cpu";
  out.title = machine.processor;
  out.architecture = GpuArchitecture::kCpu;
  out.sm_count = 1;
  out.cores = machine.cores;
  out.machine_memory = machine.memory;
  out.memory = machine.memory / std::max<std::int64_t>(1, ranks);
  out.memory_bandwidth = kCoreBandwidth;
  const double clock = machine.clock_hz > 0 ? machine.clock_hz : kAssumedClockHz;
  const double lanes = static_cast<double>(machine.vector_bits) / 32;
  const double per_lane = machine.fused_multiply_add ? 2 : 1;
  out.dense_peak[DataType::kFp32] = FlopsPerSecond(clock * kPipes * lanes * per_lane);
  // Products in fp8 are emulated: their operands are expanded, and multiplied in fp32.
  out.dense_peak[DataType::kFp8] = out.dense_peak[DataType::kFp32];
  out.sources = {"/proc/cpuinfo, /proc/meminfo, sched_getaffinity"};
  out.notes = fmt::format(
      "one core: {:.3f} GHz{}, {} vector operations of {} bits per cycle{}; {:g} GB/s of memory "
      "bandwidth per core is an estimate (what one core streams at least)",
      clock * 1e-9, machine.clock_hz > 0 ? "" : " (assumed)", kPipes, machine.vector_bits,
      machine.fused_multiply_add ? ", multiply and add fused" : "", kCoreBandwidth.value() * 1e-9);
  return out;
}

void share_memory(ClusterSpec& spec) {
  if (spec.accelerator.machine_memory == 0) return;
  spec.accelerator.memory = spec.accelerator.machine_memory / std::max<std::int64_t>(1, spec.gpus);
}

Cluster local_cluster(const MachineFacts& machine, std::int64_t ranks) {
  Cluster out;
  ClusterSpec& spec = out.spec;
  spec.name = spec.base = kLocalCluster;
  spec.is_graph = true;
  spec.title = fmt::format("this machine: {} cores of {}", machine.cores, machine.processor);
  spec.accelerator = cpu_accelerator(machine, ranks);
  spec.nodes = 1;
  spec.gpus = spec.gpus_per_node = ranks;
  spec.nics_per_node = 0;
  spec.scale_up = ScaleUp::kPcie;  // no NVLink
  spec.scale_up_bandwidth = spec.pcie_bandwidth = kCoreBandwidth / kCopies;
  spec.scale_up_latency = kHandOver;
  spec.nodes_per_leaf_group = 1;
  spec.rail_optimised = false;
  spec.cpu = vendor_of(machine.vendor);
  spec.network = Network::kNone;
  spec.shared_cores = machine.cores;
  spec.sources = spec.accelerator.sources;
  spec.notes = spec.accelerator.notes +
               "; ranks hand messages over in memory, copied in and out at that bandwidth";

  const VertexId memory = out.topology.add_vertex({VertexKind::kHost, 0, 0}, "memory");
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(ranks); ++r) {
    const VertexId rank =
        out.topology.add_vertex({VertexKind::kGpu, 0, r}, fmt::format("rank{}", r));
    out.topology.add_cable(
        {rank, memory, LinkKind::kHostBus, spec.scale_up_bandwidth, kHandOver / 2});
  }
  return out;
}

Cluster read_local_cluster(ObjectReader& reader, const std::string& topologies_folder) {
  const MachineFacts machine = this_machine();
  if (!machine.unreadable.empty()) {
    reader.fail("base", ErrorCode::kIo, "is not known: " + machine.unreadable + " cannot be read");
  }
  const std::int64_t ranks = reader.integer("gpus", 1, kMaxLocalRanks)
                                 .value_or(std::min<std::int64_t>(machine.cores, kMaxLocalRanks));
  reader.integer("nodes", 1, 1);
  Cluster out = local_cluster(machine, ranks);
  read_identity_fields(reader, topologies_folder, out.spec);
  share_memory(out.spec);
  reader.finish();
  return out;
}

}  // namespace stepcast
