// SPDX-License-Identifier: Apache-2.0
// gpu.json: stepcast-gpu writes it beside the points that it has measured, and says there how
// kernels, copies and collectives of this GPU take from each other, and which GPU it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/gpu_kernel_kind.h"
#include "calibrate/import/imported.h"
#include "calibrate/protocol/gpu_condition.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/result.h"
#include "cost/host_memory.h"
#include "cost/provenance.h"

namespace stepcast {

struct Rows;  // core/rows.h

// Parts of a run. They are no members of it: a class that is not complete yet cannot be asked
// whether its members can be made, and optionals ask.
namespace gpu_run {

// The time of a launch, on the host.
struct Host {
  double launch_s = 0;
  double graph_launch_s = 0;           // of a kernel inside a graph
  std::optional<double> collective_s;  // none: as long as a kernel's launch

  static Rows fields();
};

// A kernel that ran for seconds without rest.
struct Sustained {
  double factor = 1;  // its time over that of a sample
  std::string operation;
  GpuCondition condition;

  static Rows fields();
};
// The longest needed kernel of each kind, under the kind's name.
struct SustainedKernels {
  std::optional<Sustained> gemm, gemm_fp8, grouped_gemm, attention, attention_backward,
      memory_bound;

  std::optional<Sustained>& of(GpuKernelKind kind);

  static Rows fields();
};

// A large product beside a transfer: how many times longer each takes than alone.
struct Beside {
  double product_slowdown = 1, slowdown = 1;
  std::optional<double> bytes_per_s = {};              // of a copy alone
  std::optional<std::int64_t> ranks = {}, bytes = {};  // of a collective

  static Rows fields();
};
struct Copies {
  std::optional<Beside> to_device, to_host, on_device;

  static Rows fields();
};
struct Transfers {
  std::optional<Beside> all_reduce;  // none: of one GPU
  Copies copies;

  static Rows fields();
};

}  // namespace gpu_run

struct GpuRun {
  using Sustained = gpu_run::Sustained;
  using Beside = gpu_run::Beside;
  using Copies = gpu_run::Copies;

  std::string device;  // in the driver's words
  gpu_run::Host host;
  gpu_run::SustainedKernels sustained;
  gpu_run::Transfers beside;
  std::optional<HostMemory> host_memory;
  Json machine = Json::object();  // facts for people

  void check(const JsonValue& value) const;

  static Rows fields();
};

std::string gpu_run_text(const GpuRun& run);
// Errors name file and key.
Result<GpuRun> load_gpu_run(const std::string& file);

// The run as a profile of `cluster`'s device takes it. The cost models use the factors of kernels
// without rest, the SMs that an all-reduce takes and the host's memory; all else become facts of
// the machine.
OwnRun own_run_of(const GpuRun& run, const ClusterSpec& cluster);

}  // namespace stepcast
