// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cross_entropy.h"

#include <limits>

#include "kernels/cpu/cross_entropy.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class CrossEntropy : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(CrossEntropy, NumberTypes, TypeNames);

constexpr std::int64_t kRows = 3;

template <typename T>
void expect_same_as_cpu(const LogitSlice& slice, const std::vector<std::int64_t>& targets,
                        std::vector<T> logits) {
  auto largest = zeros<double>(kRows), sum = largest, target = largest;
  auto expected = widened(logits);
  cpu::cross_entropy(slice, expected.data(), targets.data(), kRows, largest.data(), sum.data(),
                     target.data());
  const DeviceArray<T> in_place(logits);
  const DeviceArray<std::int64_t> ids(targets);
  const DeviceArray<float> of_largest(kRows), of_sum(kRows), of_target(kRows);
  cross_entropy(slice, in_place.data(), ids.data(), kRows, of_largest.data(), of_sum.data(),
                of_target.data(), nullptr);
  EXPECT_EQ(widened(of_largest.on_host()), largest);
  expect_close(of_sum.on_host(), sum, kSame<float>);
  EXPECT_EQ(widened(of_target.on_host()), target);

  // Sums that are not this slice's alone stand here after a reduction over slices.
  const std::vector<float> all(kRows, 2 * static_cast<float>(slice.valid) + 1);
  cpu::cross_entropy_backward(slice, expected.data(), targets.data(), kRows, largest.data(),
                              widened(all).data(), 0.25);
  const DeviceArray<float> of_all(all);
  cross_entropy_backward(slice, in_place.data(), ids.data(), kRows, of_largest.data(),
                         of_all.data(), 0.25F, nullptr);
  expect_close(widened(in_place.on_host()), expected, kSame<T>);
}

TYPED_TEST(CrossEntropy, EqualsTheCpu) {
  for (const std::int64_t columns : {1, 9, 64, 5003}) {
    expect_same_as_cpu({0, columns, columns}, {0, columns / 2, columns - 1},
                       numbers_as<TypeParam>(kRows * columns, 1));
  }
}

TYPED_TEST(CrossEntropy, PaddingAndTargetsOfOtherSlicesTakeNoPart) {
  using T = TypeParam;
  auto logits = numbers_as<T>(kRows * 24, 2);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t c = 19; c < 24; ++c) logits[row * 24 + c] = rounded<T>(6e4F);
  }
  expect_same_as_cpu({100, 24, 19}, {99, 118, 119}, logits);  // before, inside, in the padding
}

TYPED_TEST(CrossEntropy, LogitsThatGrowRescaleTheSum) {
  using T = TypeParam;
  std::vector<T> logits;
  for (int i = 0; i < kRows * 9000; ++i) {
    logits.push_back(rounded<T>(static_cast<float>(i % 9000) / 100));
  }
  expect_same_as_cpu({0, 9000, 9000}, {0, 8999, 5000}, logits);
}

TYPED_TEST(CrossEntropy, SliceOfPaddingAloneHasNothingToSay) {
  using T = TypeParam;
  const DeviceArray<T> logits(numbers_as<T>(kRows * 4, 4));
  const DeviceArray<std::int64_t> targets(std::vector<std::int64_t>{8, 9, 1});
  const DeviceArray<float> largest(kRows), sum(kRows), target(kRows);
  cross_entropy({8, 4, 0}, logits.data(), targets.data(), kRows, largest.data(), sum.data(),
                target.data(), nullptr);
  EXPECT_EQ(largest.on_host(), std::vector<float>(3, -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(sum.on_host(), zeros<float>(kRows));
  EXPECT_EQ(target.on_host(), zeros<float>(kRows));
  const DeviceArray<float> ones(std::vector<float>(3, 1));
  cross_entropy_backward({8, 4, 0}, logits.data(), targets.data(), kRows, ones.data(), ones.data(),
                         1.0F, nullptr);
  EXPECT_EQ(widened(logits.on_host()), zeros<double>(kRows * 4));
}

}  // namespace
}  // namespace stepcast::cuda
