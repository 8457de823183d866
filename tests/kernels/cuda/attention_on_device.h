// SPDX-License-Identifier: Apache-2.0
// Attention on the device, forward and backward, against the CPU's.
#pragma once

#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cuda/attention_choice.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {

// Packed rows [queries | keys | values | spare elements]. With spare % 8 == 0 and such heads, the
// kernels access by 16 bytes.
template <typename T>
struct Case {
  AttentionShape shape;
  std::int64_t spare;
  std::int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  std::int64_t stride = width + 2 * kv_width + spare;
  std::int64_t rows = shape.batch * std::max(shape.sequence, shape.key_rows());
  std::vector<T> packed = numbers_as<T>(rows * stride, 1);
  std::vector<T> probe = numbers_as<T>(rows * width, 2);  // gradient of the context
};

template <typename T>
struct Results {
  std::vector<T> context;
  std::vector<float> log_sum_exp;
  std::vector<T> gradient;  // packed; spare elements are 7
};

template <typename T>
Results<T> on_device(const Case<T>& c, AttentionKernels& kernels) {
  const DeviceArray<T> packed(c.packed), probe(c.probe);
  const DeviceArray<T> context(zeros<T>(c.rows * c.width));
  const DeviceArray<T> gradient(
      std::vector<T>(static_cast<std::size_t>(c.rows * c.stride), rounded<T>(7)));
  const DeviceArray<float> sums(zeros<float>(c.rows * c.shape.heads)),
      workspace(c.rows * c.shape.heads);
  const auto part = [&](T* data, std::int64_t offset) { return Heads<T>{data + offset, c.stride}; };
  const auto input = [&](std::int64_t offset) {
    return Heads<const T>{packed.data() + offset, c.stride};
  };
  const std::int64_t key = c.width, value = c.width + c.kv_width;
  const ForwardArrays<T> forward{
      input(0), input(key), input(value), {context.data(), c.width}, sums.data()};
  kernels.forward(c.shape, forward, nullptr);
  const BackwardArrays<T> backward{input(0),
                                   input(key),
                                   input(value),
                                   {context.data(), c.width},
                                   sums.data(),
                                   {probe.data(), c.width},
                                   part(gradient.data(), 0),
                                   part(gradient.data(), key),
                                   part(gradient.data(), value),
                                   workspace.data()};
  kernels.backward(c.shape, backward, nullptr);
  return {context.on_host(), sums.on_host(), gradient.on_host()};
}

// The CPU's results in double: forward from the same inputs, backward from the results of the
// device's forward pass.
template <typename T>
void expect_same_as_cpu(const Case<T>& c, AttentionKernels& kernels, double forward_tolerance,
                        double backward_tolerance) {
  SCOPED_TRACE(::testing::Message()
               << c.shape.batch << " x " << c.shape.heads << "/" << c.shape.kv_heads << " x "
               << c.shape.sequence << " x " << c.shape.head_dim << (c.shape.causal ? " causal" : "")
               << ", " << c.spare << " spare");
  const Results<T> actual = on_device(c, kernels);
  const auto packed = widened(c.packed), probe = widened(c.probe);
  const auto input = [&](std::int64_t offset) {
    return Heads<const double>{packed.data() + offset, c.stride};
  };
  const std::int64_t key = c.width, value = c.width + c.kv_width;
  auto context = zeros<double>(c.rows * c.width), sums = zeros<double>(c.rows * c.shape.heads);
  cpu::attention<double>(c.shape, input(0), input(key), input(value), {context.data(), c.width},
                         sums.data());
  expect_close(widened(actual.context), context, forward_tolerance);
  expect_close(actual.log_sum_exp, sums, 256 * 0x1p-24);

  const auto given = widened(actual.context), given_sums = widened(actual.log_sum_exp);
  auto gradient = std::vector<double>(packed.size(), 7.0);
  auto workspace = context;
  cpu::attention_backward<double>(
      c.shape, input(0), input(key), input(value), {given.data(), c.width}, given_sums.data(),
      {probe.data(), c.width}, {gradient.data(), c.stride}, {gradient.data() + key, c.stride},
      {gradient.data() + value, c.stride}, workspace.data());
  for (std::int64_t row = 0; row < c.rows; ++row) {  // what is spare is left alone
    for (std::int64_t i = c.stride - c.spare; i < c.stride; ++i) {
      ASSERT_EQ(to_float(actual.gradient[static_cast<std::size_t>(row * c.stride + i)]), 7.0F);
    }
  }
  // Each of the three has its own largest number, at least 1: gradients of a single key are 0.
  std::vector<double> wanted[3] = {{1}, {1}, {1}}, got[3] = {{1}, {1}, {1}};
  for (std::int64_t i = 0; i < c.rows * c.stride; ++i) {
    const std::int64_t column = i % c.stride;
    const std::size_t side = column < key ? 0 : column < value ? 1 : 2;
    if (column >= c.stride - c.spare) continue;
    wanted[side].push_back(gradient[static_cast<std::size_t>(i)]);
    got[side].push_back(
        static_cast<double>(to_float(actual.gradient[static_cast<std::size_t>(i)])));
  }
  for (std::size_t side = 0; side < 3; ++side) {
    SCOPED_TRACE(::testing::Message() << "gradient " << side);
    expect_close(got[side], wanted[side], backward_tolerance);
  }
}

// Rounding of the result, and of every probability: the latter at most the unit times the mean of
// |value|, here up to twice the largest context. Backward, probabilities and gradients of scores
// are rounded, and what they are multiplied with is of either sign: sums may cancel to a third.
template <typename T>
constexpr double kForward = sizeof(T) == 4 ? 128 * 0x1p-24 : 3 * kRoundingUnit<T>;
template <typename T>
constexpr double kBackward = sizeof(T) == 4 ? 256 * 0x1p-24 : 4 * kRoundingUnit<T>;

}  // namespace stepcast::cuda
