// SPDX-License-Identifier: Apache-2.0
// A rank computes on a device: its memory and its host's, its kernels, its streams. Computing runs
// in the order in which it is queued; transfers run beside it, in order on each stream.
//
// Implementations: execute/host_device.h (the calling thread computes),
// execute/cuda/cuda_device.h (a GPU's streams).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "cluster/host_link.h"
#include "comm/device_communicator.h"
#include "kernels/kernels.h"
#include "program/rank_stream.h"

namespace stepcast {

using Clock = std::chrono::steady_clock;

// When one instruction started and ended, known once the host has waited for it.
struct Event {
  virtual ~Event() = default;
  bool ended = false;
  Clock::time_point start, end;
};
using EventHandle = std::shared_ptr<Event>;

using Pending = std::unique_ptr<Request>;
// Starts traffic behind what `after` holds. Null result: there is nothing to do.
using StartTraffic = std::function<Pending(DeviceStream after)>;

struct Transfer {
  std::vector<EventHandle> waits;
  DeviceCommunicator* group = nullptr;  // null: alone, or traffic is left out
  std::vector<StartTraffic> starts;     // one after the other
  std::function<void()> finish;         // may be empty; before the event ends
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Memory whose first use is on `stream`. Throws where no memory is left.
  virtual void* allocate(std::size_t bytes, Stream stream) = 0;
  // Frees the memory once everything that is queued for computing so far has run. Any thread may
  // call it.
  virtual void release(void* data, std::size_t bytes) noexcept = 0;
};

class Device : public Allocator {
 public:
  virtual Kernels& kernels() = 0;

  virtual void zero(void* data, std::size_t bytes) = 0;
  // Runs in the order of what is computed; `from` may change afterwards.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  // Waits for what is computed, and is there afterwards.
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  // Host memory that copies are fast from and to.
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void release_host(void* data) noexcept = 0;
  // Copies between the two memories, behind what `after` holds. A GPU's host does not wait: both
  // places stay as they are until `after` has come so far.
  virtual void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction,
                    DeviceStream after) = 0;

  // Computes: `work` calls kernels.
  virtual EventHandle run(const std::vector<EventHandle>& waits,
                          const std::function<void()>& work) = 0;
  // Traffic between what is computed before and behind it.
  virtual void communicate(DeviceCommunicator& group, const StartTraffic& start) = 0;
  virtual EventHandle post(Stream stream, Transfer transfer) = 0;
  // An event at the point that computing has reached.
  virtual EventHandle mark() = 0;

  // Work that is computed from now on runs after `event`.
  virtual void hold(const EventHandle& event) = 0;
  // Drops what has not ended; nothing is queued afterwards.
  virtual void stop() noexcept = 0;
  // Now, nothing being computed: times of later events are exact near it.
  virtual Clock::time_point begin_step() = 0;
  // Makes the host wait. Throws what a transfer has thrown.
  virtual void wait(const std::vector<EventHandle>& events) = 0;
};

}  // namespace stepcast
