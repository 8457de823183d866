// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/expert_activation.h"

#include "kernels/cpu/experts.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class ExpertActivation : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(ExpertActivation, NumberTypes, TypeNames);

template <typename T>
void expect_same_as_cpu(ActivationKind kind, std::int64_t rows, std::int64_t width) {
  const std::int64_t ups = kind == ActivationKind::kSwiglu ? 2 * width : width;
  const auto up = numbers_as<T>(rows * ups, 1), probe = numbers_as<T>(rows * width, 2);
  const auto weights = cpu::numbers<float>(rows, 3);
  const std::vector<double> wide(weights.begin(), weights.end());
  auto out = zeros<double>(rows * width), of_up = zeros<double>(rows * ups),
       of_weights = zeros<double>(rows);
  cpu::expert_activation<double>(kind, widened(up).data(), wide.data(), out.data(), rows, width);
  cpu::expert_activation_backward<double>(kind, widened(up).data(), wide.data(),
                                          widened(probe).data(), of_up.data(), of_weights.data(),
                                          rows, width);
  const DeviceArray<T> in(up), gradient(probe), result(rows * width), up_gradient(rows * ups);
  const DeviceArray<float> factor(weights), weight_gradient(rows);
  expert_activation(kind, in.data(), factor.data(), result.data(), rows, width, nullptr);
  expect_close(widened(result.on_host()), out, kSame<T>);
  expert_activation_backward(kind, in.data(), factor.data(), gradient.data(), up_gradient.data(),
                             weight_gradient.data(), rows, width, nullptr);
  expect_close(widened(up_gradient.on_host()), of_up, kSame<T>);
  expect_close(weight_gradient.on_host(), of_weights, kSame<float>);
}

TYPED_TEST(ExpertActivation, WeighsRowsAsTheCpu) {
  for (const ActivationKind kind : {ActivationKind::kGelu, ActivationKind::kSwiglu}) {
    expect_same_as_cpu<TypeParam>(kind, 3, 5);
    expect_same_as_cpu<TypeParam>(kind, 40, 64);
    expect_same_as_cpu<TypeParam>(kind, 5, 2056);
  }
}

}  // namespace
}  // namespace stepcast::cuda
