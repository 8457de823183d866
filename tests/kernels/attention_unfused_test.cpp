// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/attention_case.h"

namespace stepcast::cpu {
namespace {

TEST(UnfusedAttention, EqualsItsFormula) {
  for (const AttentionShape& shape : kSmall) {
    const AttentionCase<double> c{shape};
    expect_close(unfused(c), naive(c).context, kSameInDouble);
    expect_close(unfused(in_float(c)), naive(c).context, kSameInFloat);
  }
}

TEST(UnfusedAttention, GradientsEqualCentralDifferences) {
  for (const AttentionShape& shape : kSmall) {
    AttentionCase<double> c{shape};
    const auto loss = [&] { return dot(unfused(c), c.probe); };
    const auto gradient = unfused_gradient(c);
    expect_close(gradient, slopes(c.packed, loss), kSlopeTolerance);
    expect_close(unfused_gradient(in_float(c)), gradient, kSameInFloat);
  }
}

TEST(UnfusedAttention, EqualsTheFusedForm) {
  for (const AttentionShape& shape : kTiled) {
    const AttentionCase<double> c{shape};
    expect_close(unfused(c), fused(c).context, kSameInDouble);
  }
}

TEST(MaskedSoftmax, RowsSumToOneAndWhatComesLaterHasNone) {
  const AttentionCase<double> c{{1, 2, 2, 21, 4, true}};
  const auto probabilities = probabilities_of(c);
  for (std::size_t row = 0; row < 2 * 21; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < 21; ++column) {
      const double p = probabilities[row * 21 + column];
      sum += p;
      if (column > row % 21) {
        EXPECT_EQ(p, 0);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

TEST(MaskedSoftmax, GradientEqualsCentralDifferencesAlsoWhereItIsMasked) {
  for (const bool causal : {true, false}) {
    const AttentionShape shape{1, 2, 2, 9, 3, causal};
    auto scores = numbers(2 * 81, 1);
    const auto probe = numbers(2 * 81, 2);
    auto probabilities = scores;
    const auto loss = [&] {
      masked_softmax(shape, scores.data(), probabilities.data());
      return dot(probabilities, probe);
    };
    loss();
    auto gradient = probe;
    masked_softmax_backward(shape, probabilities.data(), gradient.data(), gradient.data());
    expect_close(gradient, slopes(scores, loss), kSlopeTolerance);
  }
}

TEST(GatherQkvGradient, SumsTheGroupsOfAKeyValueHead) {
  // Four query heads of one element, two key-value heads, one token: 1 + 2 and 3 + 4.
  const AttentionShape shape{1, 4, 2, 1, 1, true};
  const std::vector<double> dq = {5, 6, 7, 8};
  const std::vector<double> dk = {1, 2, 3, 4};
  const std::vector<double> dv = {10, 20, 30, 40};
  std::vector<double> out(8);
  gather_qkv_gradient<double>(shape, dq.data(), dk.data(), dv.data(), {out.data(), 8},
                              {out.data() + 4, 8}, {out.data() + 6, 8});
  EXPECT_EQ(out, (std::vector<double>{5, 6, 7, 8, 3, 7, 30, 70}));
}

}  // namespace
}  // namespace stepcast::cpu
