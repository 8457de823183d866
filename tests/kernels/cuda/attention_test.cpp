// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention.h"

#include <tuple>

#include "kernels/cuda/attention_on_device.h"

namespace stepcast::cuda {
namespace {

template <typename T>
class Attention : public OnDeviceIn<T> {};
TYPED_TEST_SUITE(Attention, NumberTypes, TypeNames);

const AttentionSettings kOwnKernels{.fixed = AttentionKernel::kOwn};

template <typename T>
void expect_same_as_cpu(const AttentionShape& shape) {
  AttentionKernels kernels(kOwnKernels);
  for (const std::int64_t spare : {3, 8}) {
    expect_same_as_cpu(Case<T>{shape, spare}, kernels, kForward<T>, kBackward<T>);
  }
}

TYPED_TEST(Attention, EqualsTheCpuInsideOneTile) {
  expect_same_as_cpu<TypeParam>({1, 2, 1, 1, 64, true});
  expect_same_as_cpu<TypeParam>({2, 4, 2, 30, 64, true});
  expect_same_as_cpu<TypeParam>({1, 2, 2, 64, 64, false});
}

TYPED_TEST(Attention, EqualsTheCpuAcrossTiles) {
  expect_same_as_cpu<TypeParam>({1, 2, 1, 200, 64, true});
  expect_same_as_cpu<TypeParam>({2, 1, 1, 150, 64, false});
}

TYPED_TEST(Attention, EqualsTheCpuForEveryHeadDimension) {
  for (const std::int64_t head_dim : {80, 96, 128, 256}) {
    expect_same_as_cpu<TypeParam>({1, 1, 1, 100, head_dim, true});
    expect_same_as_cpu<TypeParam>({1, 1, 1, 70, head_dim, false});
  }
}

TYPED_TEST(Attention, EqualsTheCpuForHeadsBetweenThose) {
  for (const std::int64_t head_dim : {1, 20, 72, 136}) {
    expect_same_as_cpu<TypeParam>({1, 2, 1, 40, head_dim, true});
  }
}

// Steps of a ring, and pieces of a sequence against what came before them.
TYPED_TEST(Attention, EqualsTheCpuWhereKeysAreNotAsManyAsQueries) {
  for (const auto& [queries, keys, causal] :
       {std::tuple{130, 65, false}, std::tuple{65, 130, false}, std::tuple{40, 170, true}}) {
    AttentionShape shape{1, 4, 2, queries, 64, causal};
    shape.keys = keys;
    expect_same_as_cpu<TypeParam>(shape);
  }
}

TYPED_TEST(Attention, GroupsOfEightShareKeys) {
  expect_same_as_cpu<TypeParam>({1, 8, 1, 70, 64, true});
}

// Tiles of 64 keys, so 528 blocks take a part of each query head here; with many heads of keys
// there are blocks enough. Groups of eight above are dealt to eight blocks.
TEST(AttentionKeySums, AreThoseOfThePartsThatMakeBlocksEnough) {
  EXPECT_EQ(attention_key_sums<Bf16>({1, 8, 1, 70, 64, true}), 2 * 8 * 70 * 64);
  EXPECT_EQ(attention_key_sums<Bf16>({1, 16, 1, 8192, 128, true}), 2 * 5 * 8192 * 128);
  EXPECT_EQ(attention_key_sums<Bf16>({1, 32, 8, 8192, 128, true}), 0);
  EXPECT_EQ(attention_key_sums<float>({1, 8, 1, 70, 64, true}), 0);
}

TYPED_TEST(Attention, LargeScoresThatGrowFromTileToTileAreNoTrouble) {
  using T = TypeParam;
  Case<T> c{{1, 1, 1, 150, 64, false}, 0};
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t i = 0; i < 2 * c.width; ++i) {  // scores 64 * 4 * row / 8
      c.packed[static_cast<std::size_t>(row * c.stride + i)] =
          rounded<T>(i < c.width ? 4 : static_cast<float>(row));
    }
  }
  AttentionKernels kernels(kOwnKernels);
  const Results<T> actual = on_device(c, kernels);
  for (std::int64_t row = 0; row < c.rows; ++row) {  // all the weight is on the last key
    for (std::int64_t i = 0; i < c.width; ++i) {
      EXPECT_EQ(to_float(actual.context[static_cast<std::size_t>(row * c.width + i)]),
                to_float(c.packed[static_cast<std::size_t>(149 * c.stride + 2 * c.width + i)]));
    }
  }
  for (const T value : actual.gradient) EXPECT_TRUE(std::isfinite(to_float(value)));
}

TYPED_TEST(Attention, GivesTheSameBitsEveryTime) {
  const Case<TypeParam> c{{1, 2, 1, 130, 64, true}, 0};
  AttentionKernels kernels(kOwnKernels);
  const auto once = on_device(c, kernels), again = on_device(c, kernels);
  EXPECT_EQ(widened(once.context), widened(again.context));
  EXPECT_EQ(widened(once.gradient), widened(again.gradient));
}

}  // namespace
}  // namespace stepcast::cuda
