// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda_error.h"

namespace stepcast::cuda {
namespace {

constexpr int kRounds = 5;

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Stream stream) {
    check(cudaEventRecord(event_, static_cast<cudaStream_t>(stream)), "cudaEventRecord");
  }
  float milliseconds_since(const Event& start) {
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float out = 0;
    check(cudaEventElapsedTime(&out, start.event_, event_), "cudaEventElapsedTime");
    return out;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

float median_time(Stream stream, int calls, const std::function<void()>& call) {
  call();
  std::vector<float> times;
  Event start, end;
  for (int round = 0; round < kRounds; ++round) {
    start.record(stream);
    for (int i = 0; i < calls; ++i) call();
    end.record(stream);
    times.push_back(end.milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}

}  // namespace stepcast::cuda
