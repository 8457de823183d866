// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/token_rows.h"

#include <algorithm>

#include "core/each.h"
#include "kernels/cpu/experts.h"
#include "kernels/cuda/device_case.h"

namespace stepcast::cuda {
namespace {

using Indices = std::vector<std::int64_t>;

template <typename T>
class TokenRows : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(TokenRows, NumberTypes, TypeNames);

// One number, a part of a chunk, whole chunks, more than a block.
const std::vector<std::int64_t> kWidths = {1, 5, 64, 2056};
constexpr std::int64_t kTargets = 37, kRows = 100;

// Each target often, in no order; some rows are of none.
Indices some_targets() {
  Indices out;
  for (std::int64_t row = 0; row < kRows; ++row) {
    out.push_back(row % 9 == 4 ? -1 : row * 23 % kTargets);
  }
  return out;
}
Indices a_permutation() {
  Indices out;
  for (std::int64_t row = 0; row < kRows; ++row) out.push_back(row * 7 % kRows);
  return out;
}

TYPED_TEST(TokenRows, AreTakenAndPutAsOnTheCpu) {
  using T = TypeParam;
  for (const std::int64_t width : each_of(kWidths)) {
    const auto tokens = numbers_as<T>(kTargets * width, 1), rows = numbers_as<T>(kRows * width, 2);
    const Indices index = some_targets(), order = a_permutation();
    auto taken = zeros<double>(kRows * width), put = taken;
    cpu::take_rows(widened(tokens).data(), index.data(), taken.data(), kRows, width);
    cpu::put_rows(widened(rows).data(), order.data(), put.data(), kRows, width);
    const DeviceArray<std::int64_t> of_row(index), place(order);
    const DeviceArray<T> from(tokens), of_rows(rows), out(kRows * width);
    take_rows(from.data(), of_row.data(), out.data(), kRows, width, nullptr);
    EXPECT_EQ(widened(out.on_host()), taken);
    const DeviceArray<T> once(rows);
    const DeviceArray<std::int32_t> workspace(kTargets + kRows);
    spread_rows(from.data(), of_row.data(), once.data(), kRows, kTargets, width, workspace.data(),
                nullptr);
    EXPECT_EQ(widened(once.on_host()), taken);
    put_rows(of_rows.data(), place.data(), out.data(), kRows, width, nullptr);
    EXPECT_EQ(widened(out.on_host()), put);
  }
}

TYPED_TEST(TokenRows, AreAddedUpInTheirOrder) {
  using T = TypeParam;
  for (const std::int64_t width : each_of(kWidths)) {
    for (const std::int64_t count : {kRows, std::int64_t{0}}) {
      const auto rows = numbers_as<T>(kRows * width, 1);
      const Indices index = some_targets();
      auto expected = zeros<float>(kTargets * width);
      cpu::add_rows(as<float>(widened(rows)).data(), index.data(), expected.data(), count, kTargets,
                    width);
      const DeviceArray<std::int64_t> target(index);
      const DeviceArray<T> from(rows), out(rows);
      const DeviceArray<std::int32_t> workspace(kTargets + kRows);
      add_rows(from.data(), target.data(), out.data(), count, kTargets, width, workspace.data(),
               nullptr);
      auto sums = out.on_host();
      sums.resize(expected.size());
      EXPECT_EQ(widened(sums), widened(as<T>(expected)));  // rounded once, whatever ran first
    }
  }
}

TYPED_TEST(TokenRows, ColumnsAreCopiedOutOfLongerRows) {
  using T = TypeParam;
  constexpr std::int64_t kFrom = 48, kTo = 40;
  for (const std::int64_t columns : {1, 20, 40}) {
    const auto rows = numbers_as<T>(kRows * kFrom, 1), before = numbers_as<T>(kRows * kTo, 2);
    auto expected = before;
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::copy_n(rows.begin() + row * kFrom, columns, expected.begin() + row * kTo);
    }
    const DeviceArray<T> from(rows), to(before);
    copy_columns(from.data(), kFrom, to.data(), kTo, kRows, columns, nullptr);
    EXPECT_EQ(widened(to.on_host()), widened(expected));
  }
}

}  // namespace
}  // namespace stepcast::cuda
