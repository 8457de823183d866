// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/expert_bias.h"

#include "kernels/cpu/expert_bias.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class ExpertBias : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(ExpertBias, NumberTypes, TypeNames);

template <typename T>
void expect_same_as_cpu(std::int64_t rows, std::int64_t width) {
  const auto data = numbers_as<T>(rows * width, 1), bias = numbers_as<T>(width, 2);
  const auto weights = cpu::numbers<float>(rows, 3);
  const std::vector<double> wide(weights.begin(), weights.end());
  const DeviceArray<float> factor(weights), products(rows);
  const DeviceArray<T> vector(bias), rest(data), weighed(rows * width);
  for (const bool weighs : {false, true}) {
    auto expected = widened(data);
    const DeviceArray<T> sums(data);
    cpu::add_weighed_bias<double>(expected.data(), widened(bias).data(),
                                  weighs ? wide.data() : nullptr, rows, width);
    add_weighed_bias<T>(sums.data(), vector.data(), weighs ? factor.data() : nullptr, rows, width,
                        nullptr);
    expect_close(widened(sums.on_host()), expected, kSame<T>);
  }
  auto expected = zeros<double>(rows * width), expected_products = zeros<double>(rows);
  cpu::weigh_rows<double>(widened(data).data(), wide.data(), expected.data(), rows, width);
  weigh_rows<T>(rest.data(), factor.data(), weighed.data(), rows, width, nullptr);
  expect_close(widened(weighed.on_host()), expected, kSame<T>);
  cpu::bias_products<double>(widened(data).data(), widened(bias).data(), expected_products.data(),
                             rows, width);
  bias_products<T>(rest.data(), vector.data(), products.data(), rows, width, nullptr);
  expect_close(products.on_host(), expected_products, kSame<float>);
}

TYPED_TEST(ExpertBias, WeighsRowsAsTheCpu) {
  expect_same_as_cpu<TypeParam>(3, 5);
  expect_same_as_cpu<TypeParam>(40, 64);
  expect_same_as_cpu<TypeParam>(5, 1032);
}

}  // namespace
}  // namespace stepcast::cuda
