// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulated/runtime.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "kernels/emulated/traffic.h"

namespace {

// An event knows whether the work that was queued when it was recorded has ended, and when.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  double when_s = 0;

  void reach(double now_s) {
    const std::lock_guard lock(mutex);
    reached = true;
    when_s = now_s;
    changed.notify_all();
  }
  double wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached; });
    return when_s;
  }
  bool is_reached() {
    const std::lock_guard lock(mutex);
    return reached;
  }
};

std::atomic<int> devices = 8;
thread_local int current_device = 0;
stepcast::emulated::CopyRates copy_rates;
std::atomic<double> launch_seconds = 0;

}  // namespace

struct CUstream_st {
  CUstream_st() : thread([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ends = true;
      changed.notify_all();
    }
    thread.join();
  }
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      const Entry entry = queue.front();
      if (entry.work) {
        lock.unlock();
        const double end_s = entry.work(now_s);
        lock.lock();
        now_s = std::max(now_s, end_s);
      }
      queue.pop_front();  // only now: who waits for the stream waits for this too
      changed.notify_all();
      if (entry.mark) entry.mark->reach(now_s);  // all work before the event has run
    }
  }

  struct Entry {
    stepcast::emulated::StreamWork work;  // or
    std::shared_ptr<Mark> mark;
  };
  void push(Entry entry) {
    const std::lock_guard lock(mutex);
    queue.push_back(std::move(entry));
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> queue;
  bool ends = false;
  double now_s = 0;
  std::thread thread;  // last: it uses the others
};

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<Mark> mark;  // null: never recorded, which counts as reached
  std::shared_ptr<Mark> latest() {
    const std::lock_guard lock(mutex);
    return mark;
  }
};

namespace {

CUstream_st& stream_of(cudaStream_t stream) {
  if (stream != nullptr) return *stream;
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<CUstream_st>> defaults;
  const std::lock_guard lock(mutex);
  auto& own = defaults[current_device];
  if (!own) own = std::make_unique<CUstream_st>();
  return *own;
}

double seconds(double bytes, cudaMemcpyKind kind) {
  const double rate = kind == cudaMemcpyHostToDevice   ? copy_rates.to_device
                      : kind == cudaMemcpyDeviceToHost ? copy_rates.to_host
                                                       : copy_rates.on_device;
  return rate > 0 ? bytes / rate : 0;
}

// Aligned as cudaMalloc aligns, and poisoned: NaNs.
cudaError_t allocate(void** data, std::size_t bytes) {
  if (posix_memalign(data, 256, bytes == 0 ? 1 : bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*data, 0xff, bytes);
  stepcast::emulated::device_memory_begins(*data, bytes);
  return cudaSuccess;
}
void give_back(void* data) {
  stepcast::emulated::device_memory_ends(data);
  std::free(data);
}

}  // namespace

namespace stepcast::emulated {

void enqueue(cudaStream_t stream, StreamWork work) {
  stream_of(stream).push({std::move(work), nullptr});
}

void set_device_count(int count) { devices = count; }
void set_copy_rates(const CopyRates& rates) { copy_rates = rates; }
namespace {
std::atomic<std::int64_t> at_once = 264;
}  // namespace

void set_blocks_at_once(std::int64_t blocks) { at_once = blocks; }
std::int64_t blocks_at_once() { return at_once; }

void set_launch_seconds(double seconds) { launch_seconds = seconds; }
void spend_launch(cudaStream_t stream) {
  if (const double seconds = launch_seconds; seconds > 0) {
    enqueue(stream, [seconds](double now_s) { return now_s + seconds; });
  }
}

struct HeldStream::Gate {
  Mark opened;
};
HeldStream::HeldStream(cudaStream_t stream) : gate_(std::make_shared<Gate>()) {
  enqueue(stream, [gate = gate_](double now_s) {
    gate->opened.wait();
    return now_s;
  });
}
HeldStream::~HeldStream() { gate_->opened.reach(0); }

}  // namespace stepcast::emulated

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    default:
      return "invalid argument";
  }
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = devices > 0 ? 13000 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int length, int device) {
  std::snprintf(bus, static_cast<std::size_t>(length), "emulated:%02X:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

cudaError_t cudaMalloc(void** data, std::size_t bytes) { return allocate(data, bytes); }
cudaError_t cudaFree(void* data) {
  give_back(data);
  return cudaSuccess;
}

// A device's pool: what stream-ordered memory is taken from, and given back to by size. It reserves
// what it uses.
struct CUmemPoolHandle_st {
  ~CUmemPoolHandle_st() {
    for (const auto& [bytes, data] : free) give_back(data);
  }
  std::mutex mutex;
  std::map<void*, std::size_t> taken;
  std::multimap<std::size_t, void*> free;
  std::size_t used = 0, peak = 0;
};

namespace {

CUmemPoolHandle_st& pool_of(int device) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<CUmemPoolHandle_st>> pools;
  const std::lock_guard lock(mutex);
  auto& own = pools[device];
  if (!own) own = std::make_unique<CUmemPoolHandle_st>();
  return *own;
}

}  // namespace

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) {
  CUmemPoolHandle_st& pool = pool_of(current_device);
  const std::lock_guard lock(pool.mutex);
  const auto found = pool.free.find(bytes);
  if (found != pool.free.end()) {
    *data = found->second;
    pool.free.erase(found);
  } else if (const cudaError_t result = allocate(data, bytes); result != cudaSuccess) {
    return result;
  }
  pool.taken[*data] = bytes;
  pool.used += bytes;
  pool.peak = std::max(pool.peak, pool.used);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  stepcast::emulated::enqueue(stream, [data, &pool = pool_of(current_device)](double now_s) {
    const std::lock_guard lock(pool.mutex);
    const auto found = pool.taken.find(data);
    if (found == pool.taken.end()) std::abort();  // freed twice
    std::memset(data, 0xff, found->second);
    pool.used -= found->second;
    pool.free.emplace(found->second, data);
    pool.taken.erase(found);
    return now_s;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int byte, std::size_t bytes, cudaStream_t stream) {
  stepcast::emulated::enqueue(stream, [=](double now_s) {
    std::memset(data, byte, bytes);
    return now_s;
  });
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  CUmemPoolHandle_st& pool = pool_of(current_device);
  const std::lock_guard lock(pool.mutex);
  *total = std::size_t{80} << 30;
  *free = *total - pool.used;
  for (const auto& [bytes, data] : pool.free) *free -= bytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = &pool_of(device);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void*) {
  const std::lock_guard lock(pool->mutex);
  if (attribute != cudaMemPoolAttrReleaseThreshold) pool->peak = pool->used;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
  const std::lock_guard lock(pool->mutex);
  const std::uint64_t peak = pool->peak;
  std::memcpy(value, &peak, sizeof peak);
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  const std::lock_guard lock(pool->mutex);
  for (const auto& [bytes, data] : pool->free) std::free(data);
  pool->free.clear();
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return allocate(data, bytes); }
cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  stepcast::emulated::enqueue(stream, [=](double now_s) {
    if (bytes > 0) std::memmove(to, from, bytes);
    return now_s + seconds(static_cast<double>(bytes), kind);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUstream_st& of = stream_of(stream);
  std::unique_lock lock(of.mutex);
  of.changed.wait(lock, [&] { return of.queue.empty(); });
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CUstream_st& of = stream_of(stream);
  const std::lock_guard lock(of.mutex);
  return of.queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::shared_ptr<Mark> mark = event->latest();
  if (mark) {
    stepcast::emulated::enqueue(stream,
                                [mark](double now_s) { return std::max(now_s, mark->wait()); });
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(event->mutex);
    event->mark = mark;
  }
  stream_of(stream).push({{}, mark});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::shared_ptr<Mark> mark = event->latest();
  return mark && !mark->is_reached() ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const std::shared_ptr<Mark> mark = event->latest()) mark->wait();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::shared_ptr<Mark> begin = from->latest(), end = to->latest();
  if (!begin || !end) return cudaErrorInvalidValue;
  if (!begin->is_reached() || !end->is_reached()) return cudaErrorNotReady;
  *milliseconds = static_cast<float>((end->wait() - begin->wait()) * 1e3);
  return cudaSuccess;
}
