// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/statistics.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/elementwise.h"

namespace stepcast {

using cuda::check;

namespace {

constexpr double kSample_s = 2e-3;   // events tell half a microsecond
constexpr double kLaunch_s = 20e-3;  // of one launch; the host comes back in time
constexpr std::int64_t kMostCalls = 1024;

// Ends the recording in any case: a stream that goes on recording can do nothing else.
cudaGraph_t recorded(cudaStream_t stream, const std::function<void(cuda::Stream)>& call,
                     std::int64_t calls) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    for (std::int64_t i = 0; i < calls; ++i) call(stream);
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  return graph;
}

}  // namespace

// Calls recorded on a stream, launched as one.
class GpuTimer::Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void(cuda::Stream)>& call, std::int64_t calls)
      : stream_(stream) {
    cudaGraph_t graph = recorded(stream, call, calls);
    const int made = cudaGraphInstantiate(&launchable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  }
  ~Graph() { cudaGraphExecDestroy(launchable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch() { check(cudaGraphLaunch(launchable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t launchable_ = nullptr;
};

GpuTimer::GpuTimer(const Nvml& nvml) : nvml_(nvml) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaEventCreate(&start_), "cudaEventCreate");
  check(cudaEventCreate(&end_), "cudaEventCreate");
}

GpuTimer::~GpuTimer() {
  cudaEventDestroy(end_);
  cudaEventDestroy(start_);
  cudaStreamDestroy(stream_);
}

// The host does `meanwhile` while the device works.
double GpuTimer::between_events(const std::function<void()>& work,
                                const std::function<void()>& meanwhile) {
  check(cudaEventRecord(start_, stream_), "cudaEventRecord");
  work();
  check(cudaEventRecord(end_, stream_), "cudaEventRecord");
  meanwhile();
  check(cudaEventSynchronize(end_), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start_, end_), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

void GpuTimer::check_device() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

void GpuTimer::load_with(GpuCall call, double between_s) {
  load_call_ = std::move(call);
  load_ = std::make_unique<Graph>(stream_, load_call_.run, calls_in(between_s, load_call_));
}

void GpuTimer::warm_up(double seconds) {
  check_device();
  for (double spent = 0; spent < seconds;) {
    spent += between_events([&] { load_->launch(); });
  }
}

double GpuTimer::seconds_of(const GpuCall& call) {
  check_device();  // data was made on the default stream
  call.run(stream_);
  return between_events([&] { call.run(stream_); });
}

// How many of them take so long, at least one.
std::int64_t GpuTimer::calls_in(double seconds, const GpuCall& call) {
  const double once = seconds_of(call);
  return std::clamp(static_cast<std::int64_t>(std::ceil(seconds / std::max(once, 1e-9))),
                    std::int64_t{1}, kMostCalls);
}

GpuMeasurement GpuTimer::measure(const GpuCall& call, const MeasurementProtocol& protocol) {
  const std::int64_t calls = calls_in(kSample_s, call);
  Graph graph(stream_, call.run, calls);
  Sampler sampler(protocol);
  std::vector<GpuCondition> conditions;
  while (!sampler.enough()) {
    Sample sample;
    load_->launch();
    sample.seconds =
        between_events([&] { graph.launch(); }, [&] { conditions.push_back(nvml_.condition()); });
    sample.calls = calls;
    sampler.add(sample);
  }
  return {sampler.result(), typical_of(conditions)};
}

SustainedRun GpuTimer::sustain(const GpuCall& call, double seconds) {
  const std::int64_t calls = calls_in(kLaunch_s, call);
  Graph graph(stream_, call.run, calls);
  std::vector<double> times;
  std::vector<GpuCondition> conditions;
  for (double spent = 0; spent < seconds;) {
    const double launch =
        between_events([&] { graph.launch(); }, [&] { conditions.push_back(nvml_.condition()); });
    times.push_back(launch / static_cast<double>(calls));
    spent += launch;
  }
  const auto half = static_cast<std::ptrdiff_t>(times.size() / 2);
  times.erase(times.begin(), times.begin() + half);
  conditions.erase(conditions.begin(), conditions.begin() + half);
  return {mean(times), typical_of(conditions)};
}

double GpuTimer::launch_s() {
  using HostClock = std::chrono::steady_clock;
  constexpr int kBatches = 21, kLaunches = 200;  // fewer than the queue holds
  const cuda::DeviceArray<float> one(std::vector<float>{0});
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const HostClock::time_point begin = HostClock::now();
    for (int i = 0; i < kLaunches; ++i) cuda::fill<float>(one.data(), 0, 1, stream_);
    times.push_back(std::chrono::duration<double>(HostClock::now() - begin).count() / kLaunches);
  }
  return median(times);
}

double GpuTimer::graph_launch_s() {
  constexpr int kSamples = 21, kKernels = 1000;
  const cuda::DeviceArray<float> one(std::vector<float>{0});
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Graph graph(
      stream_, [&](cuda::Stream s) { cuda::fill<float>(one.data(), 0, 1, s); }, kKernels);
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) {
    times.push_back(between_events([&] { graph.launch(); }) / kKernels);
  }
  return median(times);
}

}  // namespace stepcast
