// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/latent_rotary.h"

#include "kernels/cpu/latent_rotary.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/rotary.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class LatentRotary : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(LatentRotary, NumberTypes, TypeNames);

template <typename T>
void expect_same_as_cpu(const LatentShape& shape, std::int64_t stride) {
  const std::int64_t keys = shape.tokens() * shape.heads * shape.key_width(),
                     values = shape.tokens() * shape.heads * shape.value,
                     ups = shape.tokens() * shape.heads * shape.up_width();
  const auto query = numbers_as<T>(keys, 1), up = numbers_as<T>(ups, 2),
             rotary_key = numbers_as<T>(shape.tokens() * stride, 3);
  const DeviceArray<float> table(shape.sequence * shape.rotary);
  rotary_table(shape.sequence, shape.rotary, table.data(), nullptr);

  auto turned = widened(query), key = zeros<double>(keys), value = zeros<double>(values);
  const auto wide_key = widened(rotary_key);
  cpu::latent_rotary<double>(shape, turned.data(), widened(up).data(), {wide_key.data(), stride},
                             key.data(), value.data());
  const DeviceArray<T> in_place(query), of_up(up), shared(rotary_key), out_key(keys),
      out_value(values);
  latent_rotary<T>(shape, in_place.data(), of_up.data(), {shared.data(), stride}, out_key.data(),
                   out_value.data(), table.data(), nullptr);
  expect_close(widened(in_place.on_host()), turned, kSame<T>);
  expect_close(widened(out_key.on_host()), key, kSame<T>);
  EXPECT_EQ(widened(out_value.on_host()), value);

  const auto of_key = numbers_as<T>(keys, 4), of_value = numbers_as<T>(values, 5);
  auto back = widened(query), up_gradient = zeros<double>(ups),
       rotary_gradient = zeros<double>(shape.tokens() * shape.rotary);
  cpu::latent_rotary_backward<double>(shape, back.data(), widened(of_key).data(),
                                      widened(of_value).data(), up_gradient.data(),
                                      rotary_gradient.data());
  const DeviceArray<T> query_gradient(query), key_gradient(of_key), value_gradient(of_value),
      out_up(ups), out_rotary(shape.tokens() * shape.rotary);
  latent_rotary_backward<T>(shape, query_gradient.data(), key_gradient.data(),
                            value_gradient.data(), out_up.data(), out_rotary.data(), table.data(),
                            nullptr);
  expect_close(widened(query_gradient.on_host()), back, kSame<T>);
  EXPECT_EQ(widened(out_up.on_host()), up_gradient);
  expect_close(widened(out_rotary.on_host()), rotary_gradient, kSame<T>);
}

TYPED_TEST(LatentRotary, EqualsTheCpu) {
  expect_same_as_cpu<TypeParam>({2, 5, 3, 6, 4, 8}, 4);
  expect_same_as_cpu<TypeParam>({1, 4, 2, 128, 64, 128}, 576);
}

}  // namespace
}  // namespace stepcast::cuda
