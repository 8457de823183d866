// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_unfused.h"

#include "kernels/cpu/attention.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class UnfusedAttention : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(UnfusedAttention, NumberTypes, TypeNames);

constexpr AttentionShape kShapes[] = {{1, 1, 1, 1, 1, true},
                                      {2, 4, 2, 40, 16, true},
                                      {1, 2, 1, 33, 5, false},
                                      {1, 1, 1, 300, 8, true}};

TYPED_TEST(UnfusedAttention, SoftmaxEqualsTheCpuAlsoInPlace) {
  using T = TypeParam;
  for (const AttentionShape& shape : kShapes) {
    const std::int64_t count = shape.batch * shape.heads * shape.sequence * shape.sequence;
    const auto scores = numbers_as<T>(count, 1), probe = numbers_as<T>(count, 2);
    auto expected = widened(scores);
    cpu::masked_softmax(shape, widened(scores).data(), expected.data());
    const DeviceArray<T> in(scores), in_place(scores), out(count);
    masked_softmax(shape, in.data(), out.data(), nullptr);
    expect_close(widened(out.on_host()), expected, kSame<T>);
    masked_softmax(shape, in_place.data(), in_place.data(), nullptr);
    EXPECT_EQ(widened(in_place.on_host()), widened(out.on_host()));

    const auto probabilities = as<T>(expected);
    auto gradient = widened(probe);
    cpu::masked_softmax_backward(shape, widened(probabilities).data(), gradient.data(),
                                 gradient.data());
    const DeviceArray<T> chances(probabilities), up(probe);
    masked_softmax_backward(shape, chances.data(), up.data(), up.data(), nullptr);
    // With a single key the gradient is nothing but rounding, so compare beside 1.
    for (double& value : gradient) value += 1;
    auto actual = widened(up.on_host());
    for (double& value : actual) value += 1;
    expect_close(actual, gradient, kSame<T>);
  }
}

TYPED_TEST(UnfusedAttention, HeadsMoveAndGroupsAreSummed) {
  using T = TypeParam;
  for (const AttentionShape& shape : kShapes) {
    for (const std::int64_t spare : {0, 3}) {
      const std::int64_t rows = shape.batch * shape.sequence, d = shape.head_dim;
      const std::int64_t width = shape.heads * d, kv_width = shape.kv_heads * d;
      const std::int64_t stride = width + 2 * kv_width + spare;
      const auto q = numbers_as<T>(rows * width, 1), k = numbers_as<T>(rows * width, 2),
                 v = numbers_as<T>(rows * width, 3), before = numbers_as<T>(rows * stride, 4);
      auto expected = widened(before);
      cpu::gather_qkv_gradient<double>(
          shape, widened(q).data(), widened(k).data(), widened(v).data(), {expected.data(), stride},
          {expected.data() + width, stride}, {expected.data() + width + kv_width, stride});
      const DeviceArray<T> dq(q), dk(k), dv(v), packed(before), by_head(rows * width);
      gather_qkv_gradient<T>(shape, dq.data(), dk.data(), dv.data(), {packed.data(), stride},
                             {packed.data() + width, stride},
                             {packed.data() + width + kv_width, stride}, nullptr);
      expect_close(widened(packed.on_host()), expected, kSame<T>);
      context_transpose_backward<T>(shape, {packed.data(), stride}, by_head.data(), nullptr);
      EXPECT_EQ(widened(by_head.on_host()), widened(q));
      const DeviceArray<T> context(rows * width);
      auto expected_context = zeros<double>(rows * width);
      cpu::context_transpose<double>(shape, widened(q).data(), {expected_context.data(), width});
      context_transpose<T>(shape, dq.data(), {context.data(), width}, nullptr);
      EXPECT_EQ(widened(context.on_host()), expected_context);
    }
  }
}

}  // namespace
}  // namespace stepcast::cuda
