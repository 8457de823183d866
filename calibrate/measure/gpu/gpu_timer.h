// SPDX-License-Identifier: Apache-2.0
// How long kernels take on the device. Calls are recorded into a CUDA graph once and launched
// together, so that short kernels follow each other without waiting for the host.
//
// A GPU at its power limit runs all kernels at one clock, which follows from the power that they
// draw together: 1,350 MHz where an H100 runs products alone, 1,900 MHz where it runs attention
// alone, near 1,500 MHz in a step of both. So samples are taken between stretches of a load that
// draws what a step draws, and tell the time that a kernel takes in a step.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "calibrate/measure/gpu/gpu_call.h"
#include "calibrate/measure/gpu/nvml.h"
#include "calibrate/protocol/protocol.h"

namespace stepcast {

struct GpuMeasurement {
  Measurement measurement;
  GpuCondition condition;  // of its samples
};

struct SustainedRun {
  double call_s = 0;
  GpuCondition condition;
};

class GpuTimer {
 public:
  explicit GpuTimer(const Nvml& nvml);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  // One call, after another that loads kernels and chooses algorithms. Throws CudaError.
  double seconds_of(const GpuCall& call);
  // Records what runs between samples from now on, about `between_s` at a time.
  void load_with(GpuCall call, double between_s);
  // Runs the load for so long, so that clocks and power are those of a GPU at work.
  void warm_up(double seconds);
  // Measures by the protocol, under the load. Samples while the driver holds the clocks down are
  // kept: the condition says so, and waiting for another time would end with none. Throws
  // CudaError.
  GpuMeasurement measure(const GpuCall& call, const MeasurementProtocol& protocol);
  // Calls without rest for so long. What it tells is of the second half, when the power limit has
  // acted. Throws CudaError.
  SustainedRun sustain(const GpuCall& call, double seconds);

  void check_device();  // throws CudaError where it can run nothing any more

  // The host's time for one kernel: queued by itself, and inside a graph of many.
  double launch_s();
  double graph_launch_s();

 private:
  class Graph;
  double between_events(
      const std::function<void()>& work, const std::function<void()>& meanwhile = [] {});
  std::int64_t calls_in(double seconds, const GpuCall& call);

  const Nvml& nvml_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
  GpuCall load_call_;  // which the graph's memory belongs to
  std::unique_ptr<Graph> load_;
};

}  // namespace stepcast
