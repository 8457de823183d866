// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/noise.h"

#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

class Noise : public OnDevice {};

TEST_F(Noise, FillsTheRangeEvenly) {
  constexpr std::int64_t kCount = 20000;
  const DeviceArray<float> data(kCount), other(kCount);
  fill_with_noise(data.data(), kCount, 1, nullptr);
  fill_with_noise(other.data(), kCount, 2, nullptr);
  double sum = 0, squares = 0, product = 0;
  const auto x = data.on_host(), y = other.on_host();
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_GE(x[i], -1);
    ASSERT_LT(x[i], 1);
    sum += x[i];
    squares += static_cast<double>(x[i]) * x[i];
    product += static_cast<double>(x[i]) * y[i];
  }
  // Standard deviations of the means: sqrt(1/3/20000) = 0.004, sqrt(4/45/20000) = 0.002, 0.0024.
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_NEAR(product / kCount, 0, 0.012);
}

}  // namespace
}  // namespace stepcast::cuda
