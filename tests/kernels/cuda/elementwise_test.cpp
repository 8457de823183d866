// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise.h"

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Elementwise : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Elementwise, NumberTypes, TypeNames);

// Aligned and not, less and more than a block, multiples of eight and not.
constexpr std::int64_t kCounts[] = {1, 8, 1000, 4099};
constexpr std::int64_t kOffsets[] = {0, 3};

TYPED_TEST(Elementwise, AddsAndAccumulates) {
  using T = TypeParam;
  for (const std::int64_t count : kCounts) {
    for (const std::int64_t offset : kOffsets) {
      const auto a = numbers_as<T>(count, 1), b = numbers_as<T>(count, 2);
      auto expected = zeros<double>(count);
      cpu::add(widened(a).data(), widened(b).data(), expected.data(), count);
      const Shifted<T> left(a, offset), right(b, offset);
      Shifted<T> out(zeros<T>(count), offset);
      add(left.data(), right.data(), out.data(), count, nullptr);
      expect_close(widened(out.on_host()), expected, kSame<T>);
      accumulate(right.data(), left.data(), count, nullptr);
      expect_close(widened(left.on_host()), expected, kSame<T>);
      const Shifted<float> sum(as<float>(widened(a)), offset);
      accumulate(right.data(), sum.data(), count, nullptr);
      expect_close(sum.on_host(), expected, kSame<float>);
    }
  }
}

TYPED_TEST(Elementwise, AddsTheResidualWithAndWithoutBias) {
  using T = TypeParam;
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{3, 24}, {5, 2051}}) {
    const auto branch = numbers_as<T>(rows * columns, 1), bias = numbers_as<T>(columns, 2);
    const auto residual = numbers_as<T>(rows * columns, 3);
    for (const bool with_bias : {false, true}) {
      auto expected = widened(branch);
      cpu::add_residual<double>(expected.data(), with_bias ? widened(bias).data() : nullptr,
                                widened(residual).data(), expected.data(), rows, columns);
      const DeviceArray<T> in_place(branch), offsets(bias), more(residual);
      add_residual(in_place.data(), with_bias ? offsets.data() : nullptr, more.data(),
                   in_place.data(), rows, columns, nullptr);
      expect_close(widened(in_place.on_host()), expected, kSame<T>);
    }
  }
}

TYPED_TEST(Elementwise, ScalesAndFills) {
  using T = TypeParam;
  for (const std::int64_t count : kCounts) {
    const auto data = numbers_as<T>(count, 1);
    auto expected = widened(data);
    cpu::scale(expected.data(), 0.3, count);
    const Shifted<T> scaled(data, 1);
    scale(scaled.data(), 0.3F, count, nullptr);
    expect_close(widened(scaled.on_host()), expected, kSame<T>);
    fill(scaled.data(), 0.5F, count, nullptr);
    EXPECT_EQ(widened(scaled.on_host()), std::vector<double>(static_cast<std::size_t>(count), 0.5));
  }
}

TYPED_TEST(Elementwise, CastsAsTheHostRounds) {
  using T = TypeParam;
  // Halfway cases, the largest numbers, subnormal ones of fp16, infinity.
  std::vector<float> from = {0,        -0.0F,      1,        1.00390625F,  1.01171875F,
                             65504,    65519.99F,  65520,    -1e30F,       0x1p-24F,
                             0x1p-25F, 0x1.8p-24F, 0x1p-14F, 0x1.ffcp-15F, INFINITY,
                             3.4e38F,  -INFINITY};
  const auto more = cpu::numbers<float>(3000, 4);
  from.insert(from.end(), more.begin(), more.end());
  const DeviceArray<float> source(from);
  const auto count = static_cast<std::int64_t>(from.size());
  const DeviceArray<T> to(count);
  cast(source.data(), to.data(), count, nullptr);
  EXPECT_EQ(widened(to.on_host()), widened(as<T>(from)));
  const DeviceArray<float> back(count);
  cast(to.data(), back.data(), count, nullptr);
  EXPECT_EQ(widened(back.on_host()), widened(as<T>(from)));
}

TYPED_TEST(Elementwise, SumOfSquaresIsTheSameForAnyAlignment) {
  using T = TypeParam;
  const DeviceArray<double> workspace(kSumBlocks), sum(1);
  for (const std::int64_t count : kCounts) {
    const auto data = numbers_as<T>(count, 1);
    const double expected = cpu::sum_of_squares(widened(data).data(), count);
    std::vector<double> sums;
    for (const std::int64_t offset : kOffsets) {
      const Shifted<T> on_device(data, offset);
      sum_of_squares(on_device.data(), count, workspace.data(), sum.data(), false, nullptr);
      sums.push_back(sum.on_host().front());
      EXPECT_NEAR(sums.back() / expected, 1, 1e-13);
    }
    EXPECT_EQ(sums.front(), sums.back());
  }
}

TYPED_TEST(Elementwise, AdamWFollowsTheCpuAndRoundsTheWeight) {
  using T = TypeParam;
  for (const std::int64_t count : {7, 1000}) {
    auto weight = cpu::numbers(count, 1), moment1 = cpu::numbers(count, 2);
    auto moment2 = moment1;
    for (double& value : moment2) value *= value;
    const auto narrow_weight = as<float>(weight), narrow_moment1 = as<float>(moment1),
               narrow_moment2 = as<float>(moment2);
    const auto gradient = numbers_as<T>(count, 3);
    weight = widened(narrow_weight);
    moment1 = widened(narrow_moment1);
    moment2 = widened(narrow_moment2);
    const DeviceArray<T> g(gradient), out(count);
    const DeviceArray<float> w(narrow_weight), m(narrow_moment1), v(narrow_moment2);
    for (const std::int64_t step : {1, 2, 1000}) {
      cpu::adamw(AdamW{}, step, widened(gradient).data(), weight.data(), moment1.data(),
                 moment2.data(), count);
      adamw(AdamW{}, step, nullptr, g.data(), w.data(), m.data(), v.data(), out.data(), count,
            nullptr);
    }
    expect_close(w.on_host(), weight, kSame<float>);
    expect_close(m.on_host(), moment1, kSame<float>);
    expect_close(v.on_host(), moment2, kSame<float>);
    EXPECT_EQ(widened(out.on_host()), widened(as<T>(w.on_host())));
    const auto before = w.on_host();
    adamw(AdamW{}, 3, nullptr, g.data(), w.data(), m.data(), v.data(), static_cast<T*>(nullptr),
          count, nullptr);
    EXPECT_NE(w.on_host(), before);  // also without a copy
  }
}

TYPED_TEST(Elementwise, AdamWClipsGradientsOnTheirWay) {
  using T = TypeParam;
  constexpr std::int64_t kCount = 100;
  const auto gradient = numbers_as<T>(kCount, 1);
  const DeviceArray<T> g(gradient);
  for (const float norm : {0.5F, 4.0F}) {  // below the limit of 1, and above
    auto weight = cpu::zeros<double>(kCount), moment1 = weight, moment2 = weight;
    const double factor = norm < 1 ? 1 : 1 / (4 + 1e-6);
    cpu::adamw(AdamW{}, 1, widened(gradient).data(), weight.data(), moment1.data(), moment2.data(),
               kCount, factor);
    const std::vector<float> nothing(kCount);
    const DeviceArray<float> w(nothing), m(nothing), v(nothing);
    const DeviceArray<float> squared(std::vector<float>{norm * norm});
    adamw(AdamW{}, 1, squared.data(), g.data(), w.data(), m.data(), v.data(),
          static_cast<T*>(nullptr), kCount, nullptr);
    expect_close(w.on_host(), weight, kSame<float>);
    expect_close(m.on_host(), moment1, kSame<float>);
    expect_close(v.on_host(), moment2, kSame<float>);
  }
}

TYPED_TEST(Elementwise, StepsBySignFollowTheCpu) {
  using T = TypeParam;
  for (const std::int64_t count : {3, 300}) {
    auto gradient = numbers_as<T>(count, 1);
    gradient[1] = rounded<T>(0);
    auto weight = cpu::numbers(count, 2);
    const DeviceArray<T> g(gradient), out(count);
    const DeviceArray<float> w(std::vector<float>(weight.begin(), weight.end()));
    cpu::step_by_sign(widened(gradient).data(), weight.data(), 0.125, count);
    step_by_sign(g.data(), w.data(), out.data(), 0.125F, count, nullptr);
    expect_close(w.on_host(), weight, kSame<float>);
    EXPECT_EQ(widened(out.on_host()), widened(as<T>(w.on_host())));
  }
}

TYPED_TEST(Elementwise, BiasIsAddedAndItsGradientSummed) {
  using T = TypeParam;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {300, 40}, {19, 2051}, {1000, 7}}) {
    const auto data = numbers_as<T>(rows * columns, 1), bias = numbers_as<T>(columns, 2);
    const DeviceArray<float> workspace(column_sum_workspace(columns));
    for (const bool accumulates : {false, true}) {
      auto expected = widened(bias);
      cpu::bias_gradient(widened(data).data(), expected.data(), rows, columns, accumulates);
      const DeviceArray<T> on_device(data), narrow(bias);
      const DeviceArray<float> wide(as<float>(widened(bias)));
      bias_gradient(on_device.data(), narrow.data(), rows, columns, accumulates, workspace.data(),
                    nullptr);
      expect_close(widened(narrow.on_host()), expected, kSame<T>);
      bias_gradient(on_device.data(), wide.data(), rows, columns, accumulates, workspace.data(),
                    nullptr);
      expect_close(wide.on_host(), expected, kSame<float>);
    }
    auto expected = widened(data);
    cpu::add_bias(expected.data(), widened(bias).data(), rows, columns);
    const DeviceArray<T> in_place(data), offsets(bias);
    add_bias(in_place.data(), offsets.data(), rows, columns, nullptr);
    expect_close(widened(in_place.on_host()), expected, kSame<T>);
  }
}

}  // namespace
}  // namespace stepcast::cuda
