// SPDX-License-Identifier: Apache-2.0
// An array of noise on the GPU, in copies that take turns. Together they are twice as large as the
// second-level cache, so each call finds its data in memory, as in a step. Arrays of some kilobytes
// stay in the cache, as they do in a step.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/noise.h"

namespace stepcast {

class Turns {
 public:
  // `bytes`: of all arrays of a call.
  Turns(std::int64_t bytes, std::int64_t cache_bytes)
      : copies_(std::clamp<std::int64_t>(2 * cache_bytes / std::max<std::int64_t>(bytes, 1) + 1, 1,
                                         kMost)) {}
  std::int64_t copies() const { return copies_; }

 private:
  static constexpr std::int64_t kMost = 1024;
  std::int64_t copies_;
};

template <typename T>
class Rotation {
 public:
  Rotation(const Turns& turns, std::int64_t elements, std::uint32_t seed)
      : elements_(rounded_up(elements)), copies_(turns.copies()), data_(elements_ * copies_) {
    cuda::fill_with_noise(data_.data(), elements_ * copies_, seed, nullptr);
  }
  // All copies, in the place of noise.
  void fill(float value) { cuda::fill<T>(data_.data(), value, elements_ * copies_, nullptr); }
  T* next() {
    turn_ = (turn_ + 1) % copies_;
    return data_.data() + turn_ * elements_;
  }

 private:
  // Every copy begins where an allocation would.
  static std::int64_t rounded_up(std::int64_t elements) {
    constexpr auto kUnit = static_cast<std::int64_t>(256 / sizeof(T));
    return (std::max<std::int64_t>(elements, 1) + kUnit - 1) / kUnit * kUnit;
  }
  std::int64_t elements_, copies_;
  cuda::DeviceArray<T> data_;
  std::int64_t turn_ = 0;
};

}  // namespace stepcast
