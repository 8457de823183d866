// SPDX-License-Identifier: Apache-2.0
#include "execute/host_device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/cpu/cpu_kernels.h"

namespace stepcast {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

HostDevice::HostDevice() : kernels_(make_cpu_kernels()) {}

HostDevice::~HostDevice() {
  stop();
  for (const auto& [bytes, blocks] : free_) {
    for (void* block : blocks) ::operator delete(block, kAlignment);
  }
}

void* HostDevice::allocate(std::size_t bytes, Stream) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = free_.find(bytes);
    if (found != free_.end() && !found->second.empty()) {
      void* block = found->second.back();
      found->second.pop_back();
      return block;
    }
  }
  void* block = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment);
  std::memset(block, 0, bytes);
  return block;
}

void HostDevice::release(void* data, std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  free_[bytes].push_back(data);
}

void HostDevice::zero(void* data, std::size_t bytes) { std::memset(data, 0, bytes); }
void HostDevice::upload(void* to, const void* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}
void HostDevice::download(void* to, const void* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}

void* HostDevice::allocate_host(std::size_t bytes) {
  return ::operator new(std::max<std::size_t>(bytes, 1), kAlignment);
}
void HostDevice::release_host(void* data) noexcept { ::operator delete(data, kAlignment); }

void HostDevice::copy(void* to, const void* from, std::size_t bytes, CopyDirection, DeviceStream) {
  copy_bytes(to, from, bytes);
}

EventHandle HostDevice::run(const std::vector<EventHandle>& waits,
                            const std::function<void()>& work) {
  engine_.wait(waits);
  auto event = std::make_shared<Event>();
  event->start = Clock::now();
  work();
  engine_.end(event);
  return event;
}

EventHandle HostDevice::mark() {
  auto event = std::make_shared<Event>();
  event->start = Clock::now();
  event->end = event->start;
  event->ended = true;  // nobody waits for it yet
  return event;
}

void HostDevice::communicate(DeviceCommunicator&, const StartTraffic& start) {
  if (const Pending request = start(nullptr)) request->wait();
}

EventHandle HostDevice::post(Stream stream, Transfer transfer) {
  return engine_.post(stream, std::move(transfer));
}

}  // namespace stepcast
