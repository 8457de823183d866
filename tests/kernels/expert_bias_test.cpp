// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/expert_bias.h"

#include <gtest/gtest.h>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

TEST(ExpertBias, CountsByTheWeightOfARow) {
  std::vector<double> rows{1, 2, 3, 4};
  const std::vector<double> bias{10, 20}, weights{0.5, 0};
  add_weighed_bias<double>(rows.data(), bias.data(), weights.data(), 2, 2);
  EXPECT_EQ(rows, (std::vector<double>{6, 12, 3, 4}));
  add_weighed_bias<double>(rows.data(), bias.data(), nullptr, 2, 2);
  EXPECT_EQ(rows, (std::vector<double>{16, 32, 13, 24}));
}

// The loss sum(g (w b)) has in b the slope w g, summed over rows, and that in w is g b.
TEST(ExpertBias, GradientsAreThoseOfAProduct) {
  const std::vector<double> flowing{1, 2, 3, 4}, bias{10, 20}, weights{0.5, 2};
  std::vector<double> weighed(4), of_weights(2);
  weigh_rows<double>(flowing.data(), weights.data(), weighed.data(), 2, 2);
  EXPECT_EQ(weighed, (std::vector<double>{0.5, 1, 6, 8}));
  bias_products<double>(flowing.data(), bias.data(), of_weights.data(), 2, 2);
  EXPECT_EQ(of_weights, (std::vector<double>{50, 110}));
}

}  // namespace
}  // namespace stepcast::cpu
