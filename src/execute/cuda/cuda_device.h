// SPDX-License-Identifier: Apache-2.0
// A GPU as a device: one CUDA stream for each stream of a program, events between them, and memory
// from a pool of the runtime's that orders reuse by streams, so that the host may run ahead.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <deque>
#include <mutex>

#include "cluster/host_link.h"
#include "execute/device.h"
#include "kernels/cuda/cuda_kernels.h"
#include "program/rank_stream.h"

namespace stepcast {

class CudaDevice final : public Device {
 public:
  // Takes the calling thread's current GPU. Throws CudaError.
  explicit CudaDevice(const cuda::GemmSettings& products,
                      const cuda::AttentionSettings& attention = {});
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  Kernels& kernels() override { return kernels_; }
  void* allocate(std::size_t bytes, Stream stream) override;
  void release(void* data, std::size_t bytes) noexcept override;
  void zero(void* data, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  void* allocate_host(std::size_t bytes) override;  // locked in its place
  void release_host(void* data) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction,
            DeviceStream after) override;
  EventHandle run(const std::vector<EventHandle>& waits,
                  const std::function<void()>& work) override;
  void communicate(DeviceCommunicator& group, const StartTraffic& start) override;
  EventHandle post(Stream stream, Transfer transfer) override;
  EventHandle mark() override;
  void hold(const EventHandle& event) override;
  Clock::time_point begin_step() override;
  void wait(const std::vector<EventHandle>& events) override;
  void stop() noexcept override;

  // Most bytes that tensors have held at once since the device was made.
  std::int64_t peak_used_bytes() const;

 private:
  struct Marks;
  struct GpuEvent;
  cudaStream_t stream(Stream which) const { return streams_[static_cast<std::size_t>(which)]; }
  cudaStream_t compute() const { return stream(Stream::kCompute); }
  std::shared_ptr<GpuEvent> new_event();
  void record(cudaEvent_t event, Stream which);
  void wait_on(Stream which, const std::vector<EventHandle>& events);
  void start_traffic(DeviceCommunicator* group, const StartTraffic& start, Stream which);
  void drop_what_has_ended();
  void resolve(GpuEvent& event) const;

  std::array<cudaStream_t, kStreams> streams_{};
  cudaStream_t releasing_on_ = nullptr;  // what is freed is free behind what this one holds
  cudaMemPool_t pool_ = nullptr;
  cuda::CudaKernels kernels_;
  std::shared_ptr<Marks> marks_;  // outlives the events that came from it
  cudaEvent_t origin_ = nullptr;  // at origin_time_
  Clock::time_point origin_time_;
  std::deque<Pending> under_way_;  // looked at for errors: no event tells of a peer that is gone
};

}  // namespace stepcast
