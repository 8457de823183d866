// SPDX-License-Identifier: Apache-2.0
// Tests of CUDA kernels against those of the CPU: numbers that the type holds exactly go to both,
// and what comes back may differ by a multiple of the type's rounding unit.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/half_values.h"
#include "kernels/numbers.h"

namespace stepcast::cuda {

// Skips, with the runtime's reason, where no kernel can run.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu()) GTEST_SKIP() << *why;
  }
};
template <typename T>
class OnDeviceIn : public OnDevice {};
using NumberTypes = ::testing::Types<float, Bf16, Fp16>;
struct TypeNames {
  template <typename T>
  static std::string GetName(int) {
    return sizeof(T) == 4 ? "fp32" : std::is_same_v<T, Bf16> ? "bf16" : "fp16";
  }
};

using cpu::expect_close;
using cpu::zeros;

template <typename T, typename From>
std::vector<T> as(const std::vector<From>& from) {
  std::vector<T> out;
  for (const From value : from) out.push_back(rounded<T>(static_cast<float>(value)));
  return out;
}
template <typename T>
std::vector<double> widened(const std::vector<T>& from) {
  std::vector<double> out;
  for (const T value : from) out.push_back(static_cast<double>(to_float(value)));
  return out;
}
// Normal numbers that T holds exactly.
template <typename T>
std::vector<T> numbers_as(std::int64_t count, unsigned seed) {
  return as<T>(cpu::numbers(count, seed));
}

// A value in T is one rounding away from its fp32 result, which itself is off by some tens of
// 2^-24.
template <typename T>
inline constexpr double kSame = kRoundingUnit<T> + 64 * 0x1p-24;

// An array on the device that begins `offset` elements behind an aligned address.
template <typename T>
class Shifted {
 public:
  Shifted(const std::vector<T>& from, std::int64_t offset)
      : offset_(offset), array_([&] {
          std::vector<T> all(static_cast<std::size_t>(offset));
          all.insert(all.end(), from.begin(), from.end());
          return all;
        }()) {}
  T* data() const { return array_.data() + offset_; }
  std::vector<T> on_host() const {
    auto all = array_.on_host();
    return {all.begin() + offset_, all.end()};
  }

 private:
  std::int64_t offset_;
  DeviceArray<T> array_;
};

}  // namespace stepcast::cuda
