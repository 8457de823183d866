// SPDX-License-Identifier: Apache-2.0
#include "execute/cuda/cuda_device.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "comm/idle.h"
#include "core/assert.h"
#include "kernels/cuda/cuda_error.h"

namespace stepcast {

using cuda::check;

// CUDA's events. Each is used again once the event that had it has gone.
struct CudaDevice::Marks {
  ~Marks() {
    for (cudaEvent_t mark : free) cudaEventDestroy(mark);
  }
  cudaEvent_t take() {
    if (free.empty()) {
      cudaEvent_t fresh = nullptr;
      check(cudaEventCreate(&fresh), "cudaEventCreate");
      return fresh;
    }
    cudaEvent_t mark = free.back();
    free.pop_back();
    return mark;
  }
  std::vector<cudaEvent_t> free;
};

struct CudaDevice::GpuEvent : Event {
  explicit GpuEvent(std::shared_ptr<Marks> from)
      : marks(std::move(from)), begins(marks->take()), ends(marks->take()) {}
  ~GpuEvent() override { marks->free.insert(marks->free.end(), {begins, ends}); }
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  std::shared_ptr<Marks> marks;
  cudaEvent_t begins, ends;
};

CudaDevice::CudaDevice(const cuda::GemmSettings& products, const cuda::AttentionSettings& attention)
    : kernels_(products, attention), marks_(std::make_shared<Marks>()) {
  for (cudaStream_t& stream : streams_) {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  check(cudaDeviceGetDefaultMemPool(&pool_, gpu), "cudaDeviceGetDefaultMemPool");
  // Freed memory stays in the pool, because every step asks for the same again.
  std::uint64_t all = UINT64_MAX, none = 0;
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
        "cudaMemPoolSetAttribute");
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &none),
        "cudaMemPoolSetAttribute");
  kernels_.use(compute());
  releasing_on_ = compute();
  check(cudaEventCreate(&origin_), "cudaEventCreate");
  begin_step();
}

CudaDevice::~CudaDevice() {
  stop();
  cudaEventDestroy(origin_);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  cudaMemPoolTrimTo(pool_, 0);
}

void* CudaDevice::allocate(std::size_t bytes, Stream which) {
  void* data = nullptr;
  check(cudaMallocAsync(&data, std::max<std::size_t>(bytes, 1), stream(which)), "cudaMallocAsync");
  return data;
}

void CudaDevice::release(void* data, std::size_t) noexcept { cudaFreeAsync(data, releasing_on_); }

void CudaDevice::zero(void* data, std::size_t bytes) {
  check(cudaMemsetAsync(data, 0, bytes, compute()), "cudaMemsetAsync");
}

void CudaDevice::upload(void* to, const void* from, std::size_t bytes) {
  cuda::copy_to_device(to, from, bytes, compute());
}

void CudaDevice::download(void* to, const void* from, std::size_t bytes) {
  cuda::copy_to_host(to, from, bytes, compute());
}

void* CudaDevice::allocate_host(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, std::max<std::size_t>(bytes, 1)), "cudaMallocHost");
  return data;
}

void CudaDevice::release_host(void* data) noexcept { cudaFreeHost(data); }

void CudaDevice::copy(void* to, const void* from, std::size_t bytes, CopyDirection direction,
                      DeviceStream after) {
  const bool leaves = direction == CopyDirection::kToHost;
  check(cudaMemcpyAsync(to, from, bytes, leaves ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                        static_cast<cudaStream_t>(after)),
        "cudaMemcpyAsync");
}

std::shared_ptr<CudaDevice::GpuEvent> CudaDevice::new_event() {
  return std::make_shared<GpuEvent>(marks_);
}

void CudaDevice::record(cudaEvent_t event, Stream which) {
  check(cudaEventRecord(event, stream(which)), "cudaEventRecord");
}

void CudaDevice::wait_on(Stream which, const std::vector<EventHandle>& events) {
  for (const EventHandle& event : events) {
    check(cudaStreamWaitEvent(stream(which), static_cast<GpuEvent&>(*event).ends, 0),
          "cudaStreamWaitEvent");
  }
}

EventHandle CudaDevice::run(const std::vector<EventHandle>& waits,
                            const std::function<void()>& work) {
  wait_on(Stream::kCompute, waits);
  const auto event = new_event();
  record(event->begins, Stream::kCompute);
  work();
  record(event->ends, Stream::kCompute);
  return event;
}

EventHandle CudaDevice::mark() {
  const auto event = new_event();
  record(event->begins, Stream::kCompute);
  record(event->ends, Stream::kCompute);
  return event;
}

void CudaDevice::start_traffic(DeviceCommunicator* group, const StartTraffic& start, Stream which) {
  if (Pending request = start(stream(which))) under_way_.push_back(std::move(request));
  if (group != nullptr) group->hold(stream(which));
}

void CudaDevice::communicate(DeviceCommunicator& group, const StartTraffic& start) {
  start_traffic(&group, start, Stream::kCompute);
}

EventHandle CudaDevice::post(Stream which, Transfer transfer) {
  drop_what_has_ended();
  const auto event = new_event();
  wait_on(which, transfer.waits);
  record(event->begins, which);
  kernels_.use(stream(which));
  for (const StartTraffic& start : transfer.starts) start_traffic(transfer.group, start, which);
  if (transfer.finish) transfer.finish();
  kernels_.use(compute());
  record(event->ends, which);
  // Buffers that only the transfer still holds are free once it has run, which its stream knows.
  releasing_on_ = stream(which);
  transfer = {};
  releasing_on_ = compute();
  return event;
}

void CudaDevice::hold(const EventHandle& event) { wait_on(Stream::kCompute, {event}); }

// Between two of CUDA's events there are milliseconds in fp32: near ones keep microseconds apart.
Clock::time_point CudaDevice::begin_step() {
  check(cudaStreamSynchronize(compute()), "cudaStreamSynchronize");
  record(origin_, Stream::kCompute);
  check(cudaEventSynchronize(origin_), "cudaEventSynchronize");
  origin_time_ = Clock::now();
  return origin_time_;
}

void CudaDevice::drop_what_has_ended() {
  while (!under_way_.empty() && under_way_.front()->test()) under_way_.pop_front();
}

void CudaDevice::resolve(GpuEvent& event) const {
  const auto since_origin = [&](cudaEvent_t mark) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, origin_, mark), "cudaEventElapsedTime");
    return origin_time_ + std::chrono::nanoseconds(std::llround(1e6 * milliseconds));
  };
  event.start = since_origin(event.begins);
  event.end = since_origin(event.ends);
  event.ended = true;
}

void CudaDevice::wait(const std::vector<EventHandle>& events) {
  for (const EventHandle& event : events) {
    auto& own = static_cast<GpuEvent&>(*event);
    Idle idle;
    // Only the traffic shows that a peer is gone, never the event.
    while (!under_way_.empty()) {
      const cudaError_t state = cudaEventQuery(own.ends);
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) check(state, "a step");
      drop_what_has_ended();
      idle.pause();
    }
    check(cudaEventSynchronize(own.ends), "a step");
    if (!own.ended) resolve(own);
  }
}

void CudaDevice::stop() noexcept {
  // After an error traffic may wait for a rank that is gone, for ever.
  if (std::uncaught_exceptions() == 0) cudaDeviceSynchronize();
  under_way_.clear();
}

std::int64_t CudaDevice::peak_used_bytes() const {
  std::uint64_t used = 0;
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &used),
        "cudaMemPoolGetAttribute");
  return static_cast<std::int64_t>(used);
}

}  // namespace stepcast
