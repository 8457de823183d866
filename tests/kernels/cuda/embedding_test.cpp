// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/embedding.h"

#include <random>

#include "kernels/cpu/embedding.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Embedding : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Embedding, NumberTypes, TypeNames);

std::vector<std::int64_t> tokens_below(std::int64_t vocabulary, std::int64_t count) {
  std::mt19937 random(5);
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  for (auto& token : out) token = static_cast<std::int64_t>(random()) % vocabulary;
  return out;
}

template <typename T, typename Gradient>
void expect_gradient(const TableSlice& slice, const std::vector<std::int64_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const auto gradient = numbers_as<T>(count * slice.width, 1);
  const auto before = numbers_as<Gradient>(slice.rows * slice.width, 2);
  auto expected = widened(before);
  cpu::embed_tokens_backward(slice, tokens.data(), count, widened(gradient).data(),
                             expected.data());
  const DeviceArray<std::int64_t> ids(tokens);
  const DeviceArray<T> up(gradient);
  const DeviceArray<Gradient> table(before);
  embed_tokens_backward(slice, ids.data(), count, up.data(), table.data(), nullptr);
  expect_close(widened(table.on_host()), expected, kSame<Gradient>);
}

TYPED_TEST(Embedding, EqualsTheCpuForASliceOfTheVocabulary) {
  using T = TypeParam;
  for (const auto& slice : {TableSlice{0, 40, 24}, {10, 13, 7}, {39, 1, 2051}}) {
    const auto tokens = tokens_below(40, 300);  // more than a block compares at once
    const auto table = numbers_as<T>(slice.rows * slice.width, 1);
    auto expected = zeros<double>(300 * slice.width);
    cpu::embed_tokens(slice, tokens.data(), 300, widened(table).data(), expected.data());
    const DeviceArray<std::int64_t> ids(tokens);
    const DeviceArray<T> rows(table), out(300 * slice.width);
    embed_tokens(slice, ids.data(), 300, rows.data(), out.data(), nullptr);
    EXPECT_EQ(widened(out.on_host()), expected);
    expect_gradient<T, T>(slice, tokens);
    expect_gradient<T, float>(slice, tokens);
  }
}

TYPED_TEST(Embedding, GradientOfOneTokenIsTheSumOfItsRows) {
  expect_gradient<TypeParam, float>({3, 1, 16}, std::vector<std::int64_t>(700, 3));
}

TYPED_TEST(Embedding, PositionsEqualTheCpu) {
  using T = TypeParam;
  // Less than a sequence from its middle on, around its end, and several sequences.
  for (const auto& [rows, first_row, width] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{3, 2, 8}, {4, 7, 11}, {30, 0, 2048}}) {
    constexpr std::int64_t kSequence = 9;
    const auto x = numbers_as<T>(rows * width, 1), table = numbers_as<T>(kSequence * width, 2);
    auto expected = widened(x), expected_gradient = widened(table);
    cpu::add_positions(expected.data(), widened(table).data(), rows, first_row, kSequence, width);
    cpu::add_positions_backward(widened(x).data(), expected_gradient.data(), rows, first_row,
                                kSequence, width);
    const DeviceArray<T> gradient(x), positions(table), out(x), narrow(table);
    const DeviceArray<float> wide(as<float>(widened(table)));
    add_positions(out.data(), positions.data(), rows, first_row, kSequence, width, nullptr);
    expect_close(widened(out.on_host()), expected, kSame<T>);
    add_positions_backward(gradient.data(), narrow.data(), rows, first_row, kSequence, width,
                           nullptr);
    expect_close(widened(narrow.on_host()), expected_gradient, kSame<T>);
    add_positions_backward(gradient.data(), wide.data(), rows, first_row, kSequence, width,
                           nullptr);
    expect_close(wide.on_host(), expected_gradient, kSame<float>);
  }
}

}  // namespace
}  // namespace stepcast::cuda
