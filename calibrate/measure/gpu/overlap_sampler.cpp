// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/overlap_sampler.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"

namespace stepcast {

using cuda::check;
namespace {

double between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

std::shared_ptr<void> pinned(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, bytes), "cudaMallocHost");
  std::memset(data, 0x5a, bytes);
  return {data, [](void* own) { cudaFreeHost(own); }};
}

}  // namespace

OverlapSampler::OverlapSampler(GpuCall product, const CopySizes& sizes)
    : product_(std::move(product)), sizes_(sizes) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaStreamCreateWithFlags(&copy_stream_, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
  for (cudaEvent_t* event : {&first_begin_, &first_end_, &second_begin_, &second_end_}) {
    check(cudaEventCreate(event), "cudaEventCreate");
  }
}

OverlapSampler::~OverlapSampler() {
  for (cudaEvent_t event : {first_begin_, first_end_, second_begin_, second_end_}) {
    cudaEventDestroy(event);
  }
  cudaStreamDestroy(copy_stream_);
  cudaStreamDestroy(stream_);
}

BothTimes OverlapSampler::run(std::int64_t first, std::int64_t second, cudaStream_t stream,
                              const std::function<void()>& queue) {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check(cudaEventRecord(second_begin_, stream), "cudaEventRecord");
  for (std::int64_t i = 0; i < second; ++i) queue();
  check(cudaEventRecord(second_end_, stream), "cudaEventRecord");
  check(cudaEventRecord(first_begin_, stream_), "cudaEventRecord");
  for (std::int64_t i = 0; i < first; ++i) product_.run(stream_);
  check(cudaEventRecord(first_end_, stream_), "cudaEventRecord");
  check(cudaEventSynchronize(first_end_), "cudaEventSynchronize");
  check(cudaEventSynchronize(second_end_), "cudaEventSynchronize");
  return {between(first_begin_, first_end_), between(second_begin_, second_end_)};
}

GpuRun::Beside OverlapSampler::copy(void* to, const void* from, std::size_t bytes,
                                    cudaMemcpyKind kind) {
  const auto queue = [&] {
    check(cudaMemcpyAsync(to, from, bytes, kind, copy_stream_), "cudaMemcpyAsync");
  };
  const SideBySide both = measure_side_by_side([&](std::int64_t first, std::int64_t second) {
    return run(first, second, copy_stream_, queue);
  });
  GpuRun::Beside out{both.first_slowdown, both.second_slowdown};
  out.bytes_per_s = static_cast<double>(bytes) / both.second_alone_s;
  return out;
}

GpuRun::Copies OverlapSampler::copies() {
  // Copies take as long whatever is in the arrays.
  const cuda::DeviceMemory source(std::max(sizes_.host, sizes_.device)),
      target(std::max(sizes_.host, sizes_.device));
  const std::shared_ptr<void> host = pinned(sizes_.host);
  GpuRun::Copies out;
  out.to_device = copy(target.data(), host.get(), sizes_.host, cudaMemcpyHostToDevice);
  out.to_host = copy(host.get(), source.data(), sizes_.host, cudaMemcpyDeviceToHost);
  out.on_device = copy(target.data(), source.data(), sizes_.device, cudaMemcpyDeviceToDevice);
  return out;
}

GpuRun::Beside OverlapSampler::collective(DeviceCollectives& collectives, std::size_t ranks,
                                          ByteCount bytes) {
  const auto stream = static_cast<cudaStream_t>(collectives.stream());
  const SideBySide both = measure_side_by_side([&](std::int64_t first, std::int64_t second) {
    collectives.meet_up();  // all begin together, and peers that died are found
    const BothTimes own = run(first, second, stream, [&] { collectives.start(bytes); });
    std::vector<float> longest{static_cast<float>(own.first_s), static_cast<float>(own.second_s)};
    collectives.largest_of_members(longest);
    return BothTimes{static_cast<double>(longest[0]), static_cast<double>(longest[1])};
  });
  GpuRun::Beside out{both.first_slowdown, both.second_slowdown};
  out.ranks = static_cast<std::int64_t>(ranks);
  out.bytes = static_cast<std::int64_t>(bytes);
  return out;
}

}  // namespace stepcast
