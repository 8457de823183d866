// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"
#include "kernels/cuda/attention_unfused.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class AttentionProducts : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(AttentionProducts, NumberTypes, TypeNames);

// Each of the six against the CPU's, from inputs that the type holds exactly.
TYPED_TEST(AttentionProducts, EqualTheCpu) {
  using T = TypeParam;
  MatrixProducts products({.tf32 = false, .candidates = 1});
  for (const AttentionShape& shape :
       {AttentionShape{2, 4, 2, 24, 16, true}, {1, 2, 2, 17, 5, false}}) {
    const std::int64_t rows = shape.batch * shape.sequence, width = shape.heads * shape.head_dim;
    const std::int64_t kv_width = shape.kv_heads * shape.head_dim, stride = width + 2 * kv_width;
    const std::int64_t all_scores = rows * shape.heads * shape.sequence;
    const auto packed = numbers_as<T>(rows * stride, 1), scores = numbers_as<T>(all_scores, 2),
               by_head = numbers_as<T>(rows * width, 3);
    const auto wide = widened(packed), wide_scores = widened(scores), wide_heads = widened(by_head);
    const Heads<const double> q{wide.data(), stride}, k{wide.data() + width, stride},
        v{wide.data() + width + kv_width, stride};
    const DeviceArray<T> in(packed), p(scores), heads(by_head), out_scores(all_scores),
        out_heads(rows * width);
    const Heads<const T> query{in.data(), stride}, key{in.data() + width, stride},
        value{in.data() + width + kv_width, stride};
    auto expected_scores = wide_scores;
    auto expected = wide_heads;

    cpu::attention_scores<double>(shape, q, k, expected_scores.data());
    attention_scores<T>(products, shape, query, key, out_scores.data(), nullptr);
    expect_close(widened(out_scores.on_host()), expected_scores, kSame<T>);
    cpu::probabilities_gradient<double>(shape, wide_heads.data(), v, expected_scores.data());
    probabilities_gradient<T>(products, shape, heads.data(), value, out_scores.data(), nullptr);
    expect_close(widened(out_scores.on_host()), expected_scores, kSame<T>);

    cpu::attention_context<double>(shape, wide_scores.data(), v, expected.data());
    attention_context<T>(products, shape, p.data(), value, out_heads.data(), nullptr);
    expect_close(widened(out_heads.on_host()), expected, kSame<T>);
    cpu::value_gradient(shape, wide_scores.data(), wide_heads.data(), expected.data());
    value_gradient(products, shape, p.data(), heads.data(), out_heads.data(), nullptr);
    expect_close(widened(out_heads.on_host()), expected, kSame<T>);
    cpu::query_gradient<double>(shape, wide_scores.data(), k, expected.data());
    query_gradient<T>(products, shape, p.data(), key, out_heads.data(), nullptr);
    expect_close(widened(out_heads.on_host()), expected, kSame<T>);
    cpu::key_gradient<double>(shape, wide_scores.data(), q, expected.data());
    key_gradient<T>(products, shape, p.data(), query, out_heads.data(), nullptr);
    expect_close(widened(out_heads.on_host()), expected, kSame<T>);
  }
}

}  // namespace
}  // namespace stepcast::cuda
