// SPDX-License-Identifier: Apache-2.0
// The host as a device: the calling thread computes in fp32, another one drives the transfers.
// Freed blocks are kept and handed out again by exact size: a step asks for the same sizes over and
// over, and fresh pages would cost page faults that no step after the first has.
#pragma once

#include <map>
#include <mutex>

#include "execute/device.h"
#include "execute/stream_engine.h"

namespace stepcast {

class HostDevice final : public Device {
 public:
  HostDevice();
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  Kernels& kernels() override { return *kernels_; }
  void* allocate(std::size_t bytes, Stream stream) override;  // zeroes when new
  void release(void* data, std::size_t bytes) noexcept override;
  void zero(void* data, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  void* allocate_host(std::size_t bytes) override;
  void release_host(void* data) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction,
            DeviceStream after) override;
  EventHandle run(const std::vector<EventHandle>& waits,
                  const std::function<void()>& work) override;
  void communicate(DeviceCommunicator& group, const StartTraffic& start) override;
  EventHandle post(Stream stream, Transfer transfer) override;
  EventHandle mark() override;
  Clock::time_point begin_step() override { return Clock::now(); }
  void hold(const EventHandle& event) override { engine_.wait(event); }
  void wait(const std::vector<EventHandle>& events) override { engine_.wait(events); }
  void stop() noexcept override { engine_.stop(); }

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::unique_ptr<Kernels> kernels_;
  StreamEngine engine_;  // ends before the memory of its transfers
};

}  // namespace stepcast
