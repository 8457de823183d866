// SPDX-License-Identifier: Apache-2.0
// An array in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/stream.h"

namespace stepcast::cuda {

// Bytes in device memory; throws CudaError where there are not enough.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Both copies wait for everything queued on `stream` before, and return when they are done.
void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream);
void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream);

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count)
      : count_(static_cast<std::size_t>(count)), memory_(count_ * sizeof(T)) {}
  explicit DeviceArray(const std::vector<T>& from)
      : count_(from.size()), memory_(count_ * sizeof(T)) {
    copy_to_device(data(), from.data(), count_ * sizeof(T), nullptr);
  }

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> on_host(Stream stream = nullptr) const {
    std::vector<T> out(count_);
    copy_to_host(out.data(), data(), count_ * sizeof(T), stream);
    return out;
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

}  // namespace stepcast::cuda
