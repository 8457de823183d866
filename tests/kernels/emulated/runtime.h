// SPDX-License-Identifier: Apache-2.0
// Tests and other stand-ins use this of the emulated device beyond CUDA's runtime. Every stream has
// a time of its own, which events record. Work takes the time that it states, not the time that it
// takes here, and whoever waits for an event is at least as late as the event. So durations follow
// from algebra.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace stepcast::emulated {

// Work that is queued on a stream. It gets the stream's time in seconds and returns the time of its
// own end. Null is the default stream of the calling thread's device.
using StreamWork = std::function<double(double now_s)>;
void enqueue(cudaStream_t stream, StreamWork work);

void set_device_count(int devices);  // 8 unless set; 0: a machine without a GPU

// Bytes per second of copies; 0 unless set: no time at all.
struct CopyRates {
  double to_device = 0, to_host = 0, on_device = 0;
};
void set_copy_rates(const CopyRates& rates);

// The time that each launch of a kernel takes on its stream; 0 unless set.
void set_launch_seconds(double seconds);
void spend_launch(cudaStream_t stream);  // queues that time

// Blocks of any kernel that the device is said to run at the same time: 264, two on each of an
// H100's multiprocessors, unless set.
void set_blocks_at_once(std::int64_t blocks);
std::int64_t blocks_at_once();

// Keeps a stream from going on while it lives.
class HeldStream {
 public:
  explicit HeldStream(cudaStream_t stream);
  ~HeldStream();
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;

 private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace stepcast::emulated
