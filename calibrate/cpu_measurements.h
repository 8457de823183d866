// SPDX-License-Identifier: Apache-2.0
// Holds what a calibration of a machine's processor has measured, as calibrate/cpu_profile.h turns
// it into a profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/protocol/gpu_condition.h"
#include "calibrate/protocol/machine_facts.h"
#include "calibrate/protocol/protocol.h"
#include "cluster/cluster.h"
#include "cluster/this_machine.h"
#include "core/quantity.h"
#include "core/result.h"
#include "cost/collective_model.h"
#include "cost/mpi_curve.h"
#include "cost/profile.h"
#include "operation/operation.h"

namespace stepcast {

struct Rows;  // core/rows.h

// The time of another kernel that could do the same.
struct OtherKernel {
  std::string kernel;  // its curve in a profile
  Measurement measurement;
  GpuCondition condition;

  static Rows fields();
};

struct MeasuredOperation {
  Operation operation;  // not a collective
  Measurement measurement;
  GpuCondition condition = {};  // on a GPU
  // Attention on a GPU: the curve of the kernel that served, which was the faster, and beside it
  // the other one, where both can run the shape.
  std::string kernel = {};
  std::optional<OtherKernel> other = {};
};

// One way of communicating at several sizes.
struct MeasuredCollective {
  struct Point {
    ByteCount bytes = 0;
    Measurement measurement;

    static Rows fields();
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::vector<int> placement;  // node of each member, in group order; of a send both ends
  int concurrent = 1;          // such groups at work at once
  double cpu_share = 1;        // of one core, that each member takes from kernels while data moves
  double stretch = 0;          // its time beside kernels over its time alone; 0: not measured
  std::vector<Point> points;

  static Rows fields();
};

struct CpuMeasurements {
  MachineDescription machine;  // for people
  // The facts that forecasts compare, and that give the peak: this_machine() of a process that may
  // use all cores. A rank that is bound to one core would see only that one.
  MachineFacts facts;
  std::vector<MeasuredOperation> operations;
  std::vector<MeasuredCollective> collectives;
  HostFit host = kNoHost;
  std::optional<HostMemory> host_memory;
  std::string date;  // "2026-01-31"; empty: machine.date
};

// Finds everything of which no profile can be made: measurements without a sample, times that are
// not positive, collectives of fewer than two members.
Errors check(const CpuMeasurements& measurements);

}  // namespace stepcast
