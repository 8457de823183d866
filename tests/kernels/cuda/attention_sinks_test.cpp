// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_sinks.h"

#include "kernels/cpu/attention_sinks.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class AttentionSinks : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(AttentionSinks, NumberTypes, TypeNames);

constexpr DataType kWide = DataType::kFp32;

template <typename T>
constexpr DataType kNarrow = std::is_same_v<T, float>  ? DataType::kFp32
                             : std::is_same_v<T, Bf16> ? DataType::kBf16
                                                       : DataType::kFp16;

// Heads of whole chunks and of a part of one; more tokens than a block has warps.
TYPED_TEST(AttentionSinks, JoinAsOnTheCpu) {
  using T = TypeParam;
  for (const AttentionShape& shape : {AttentionShape{2, 3, 3, 21, 16}, {1, 2, 1, 5, 6}}) {
    const std::int64_t tokens = shape.batch * shape.sequence, width = shape.heads * shape.head_dim;
    const auto context = numbers_as<T>(tokens * width, 1),
               flowing = numbers_as<T>(tokens * width, 2);
    const auto sinks = numbers_as<T>(shape.heads, 3), before = numbers_as<T>(shape.heads, 5);
    auto sums = cpu::numbers<float>(tokens * shape.heads, 4);
    const DeviceArray<T> on_device(context), logits(sinks), gradients(flowing), narrow(before);
    const DeviceArray<float> statistics(sums), wide(as<float>(widened(before)));
    const auto array = [](auto& of, DataType type) { return Array{of.data(), type}; };
    auto expected = as<float>(widened(context)), held = as<float>(widened(sinks));
    auto expected_flow = as<float>(widened(flowing)),
         expected_gradient = as<float>(widened(before));
    cpu::add_sinks({.shape = shape,
                    .context = {array(expected, kWide), width},
                    .log_sum_exp = array(sums, kWide),
                    .sinks = array(held, kWide)});
    const HeadArray of_device{array(on_device, kNarrow<T>), width};
    add_sinks<T>({.shape = shape,
                  .context = of_device,
                  .log_sum_exp = array(statistics, kWide),
                  .sinks = array(logits, kNarrow<T>)},
                 nullptr);
    expect_close(widened(on_device.on_host()), expected, kSame<T>);
    expect_close(statistics.on_host(), sums, kSame<float>);
    // Contexts that were rounded go into the CPU's gradient too.
    expected = as<float>(widened(on_device.on_host()));
    cpu::sink_gradient({.shape = shape,
                        .context = {array(expected, kWide), width},
                        .context_gradient = {array(expected_flow, kWide), width},
                        .log_sum_exp = array(sums, kWide),
                        .sinks = array(held, kWide),
                        .gradient = array(expected_gradient, kWide)});
    SinkGradientArguments call{.shape = shape,
                               .context = of_device,
                               .context_gradient = {array(gradients, kNarrow<T>), width},
                               .log_sum_exp = array(statistics, kWide),
                               .sinks = array(logits, kNarrow<T>),
                               .gradient = array(narrow, kNarrow<T>)};
    sink_gradient<T, T>(call, nullptr);
    expect_close(widened(narrow.on_host()), expected_gradient, kSame<T>);
    call.gradient = array(wide, kWide);
    sink_gradient<T, float>(call, nullptr);
    expect_close(wide.on_host(), expected_gradient, kSame<float>);
  }
}

}  // namespace
}  // namespace stepcast::cuda
