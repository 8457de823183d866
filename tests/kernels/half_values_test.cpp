// SPDX-License-Identifier: Apache-2.0
// Every number of a format is itself, and every midpoint goes to the even neighbour.
#include "kernels/half_values.h"

#include <gtest/gtest.h>

namespace stepcast::cuda {
namespace {

TEST(Fp16, RoundsToTheNearestEven) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const Fp16 below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    const float low = to_float(below), high = to_float(above);
    ASSERT_LT(low, high);
    ASSERT_EQ(rounded<Fp16>(low).bits, bits);
    ASSERT_EQ(rounded<Fp16>((low + high) / 2).bits, bits % 2 == 0 ? bits : bits + 1);
  }
  EXPECT_EQ(rounded<Fp16>(65520).bits, 0x7c00);
  EXPECT_EQ(rounded<Fp16>(65519).bits, 0x7bff);
}

TEST(Bf16, RoundsToTheNearestEven) {
  for (unsigned bits = 0; bits < 0x7f7f; ++bits) {
    const Bf16 below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    const float low = to_float(below), high = to_float(above);
    ASSERT_LT(low, high);
    ASSERT_EQ(rounded<Bf16>(low).bits, bits);
    ASSERT_EQ(rounded<Bf16>(low / 2 + high / 2).bits, bits % 2 == 0 ? bits : bits + 1);
  }
  EXPECT_EQ(rounded<Bf16>(INFINITY).bits, 0x7f80);
}

}  // namespace
}  // namespace stepcast::cuda
