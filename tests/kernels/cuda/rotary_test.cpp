// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/rotary.h"

#include "kernels/cpu/rotary.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Rotary : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Rotary, NumberTypes, TypeNames);

// Queries of `heads` heads and keys of one, the former from rows that are `spare` apart, the latter
// in place.
template <typename T>
void expect_same_as_cpu(std::int64_t batch, std::int64_t sequence, std::int64_t heads,
                        std::int64_t head_dim, std::int64_t spare) {
  const std::int64_t rows = batch * sequence, width = heads * head_dim;
  const std::int64_t in_stride = width + spare, out_stride = width + 2 * spare;
  const auto in = numbers_as<T>(rows * in_stride, 1), before = numbers_as<T>(rows * out_stride, 2);
  const auto keys = numbers_as<T>(rows * head_dim, 3);
  const auto wide = widened(in);
  const DeviceArray<T> from(in);
  const DeviceArray<float> table(sequence * head_dim);
  rotary_table(sequence, head_dim, table.data(), nullptr);
  for (const bool backward : {false, true}) {
    auto expected = widened(before);  // what lies between the rows stays as it is
    cpu::rotary<double>(batch, sequence, heads, head_dim, {wide.data(), in_stride},
                        {expected.data(), out_stride}, backward);
    auto turned = widened(keys);
    cpu::rotary<double>(batch, sequence, 1, head_dim, {turned.data(), head_dim},
                        {turned.data(), head_dim}, backward);
    const DeviceArray<T> out(before), in_place(keys);
    const RotarySide<T> query{heads, {from.data(), in_stride}, {out.data(), out_stride}};
    const RotarySide<T> key{1, {in_place.data(), head_dim}, {in_place.data(), head_dim}};
    rotary(batch, sequence, head_dim, query, key, table.data(), backward, nullptr);
    expect_close(widened(out.on_host()), expected, kSame<T>);
    expect_close(widened(in_place.on_host()), turned, kSame<T>);
  }
}

TYPED_TEST(Rotary, EqualsTheCpu) {
  expect_same_as_cpu<TypeParam>(1, 3, 1, 2, 0);
  expect_same_as_cpu<TypeParam>(2, 5, 3, 64, 0);
  expect_same_as_cpu<TypeParam>(2, 4, 2, 64, 3);
  expect_same_as_cpu<TypeParam>(1, 2, 5, 80, 8);
  expect_same_as_cpu<TypeParam>(1, 2, 1, 256, 0);
}

TYPED_TEST(Rotary, AnglesFarIntoASequenceKeepTheirPrecision) {
  expect_same_as_cpu<TypeParam>(1, 5000, 1, 4, 0);
}

}  // namespace
}  // namespace stepcast::cuda
