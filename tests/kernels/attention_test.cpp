// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include "kernels/attention_case.h"

namespace stepcast::cpu {
namespace {

void expect_naive(const AttentionShape& shape) {
  const AttentionCase<double> c{shape};
  const Attended<double> expected = naive(c);
  const Attended<double> actual = fused(c);
  expect_close(actual.context, expected.context, kSameInDouble);
  expect_close(actual.log_sum_exp, expected.log_sum_exp, kSameInDouble);
  const Attended<float> narrow = fused(in_float(c));
  expect_close(narrow.context, expected.context, kSameInFloat);
  expect_close(narrow.log_sum_exp, expected.log_sum_exp, kSameInFloat);
}

TEST(Attention, EqualsItsFormulaInsideOneTile) {
  for (const AttentionShape& shape : kSmall) expect_naive(shape);
}

TEST(Attention, EqualsItsFormulaAcrossTiles) {
  for (const AttentionShape& shape : kTiled) expect_naive(shape);
}

TEST(Attention, GradientsEqualCentralDifferences) {
  for (const AttentionShape& shape : kSmall) {
    AttentionCase<double> c{shape};
    const auto loss = [&] { return dot(fused(c).context, c.probe); };
    expect_close(fused_gradient(c), slopes(c.packed, loss), kSlopeTolerance);
  }
}

TEST(Attention, OfWindowsChunksAndOtherValuesEqualsItsFormula) {
  for (const AttentionShape& shape : kVariants) {
    SCOPED_TRACE(testing::Message() << "sequence " << shape.sequence << ", window " << shape.window
                                    << ", chunk " << shape.chunk);
    expect_naive(shape);
  }
}

// Along random directions: the gradient of a whole case has too many elements for one each.
TEST(Attention, GradientsOfWindowsChunksAndOtherValuesEqualDifferences) {
  for (const AttentionShape& shape : kVariants) {
    AttentionCase<double> c{shape};
    const auto start = c.packed;
    const auto gradient = fused_gradient(c);
    expect_close(fused_gradient(in_float(c)), gradient, 2e-5);
    for (const unsigned seed : {7U, 8U, 9U}) {
      const auto direction = numbers(static_cast<std::int64_t>(start.size()), seed);
      std::vector<double> step = {0};
      const double expected = slopes(step, [&] {
                                for (std::size_t i = 0; i < start.size(); ++i) {
                                  c.packed[i] = start[i] + step.front() * direction[i];
                                }
                                return dot(fused(c).context, c.probe);
                              }).front();
      c.packed = start;
      EXPECT_NEAR(dot(gradient, direction), expected, 1e-6 * std::abs(expected) + 1e-8)
          << "sequence " << shape.sequence << ", window " << shape.window;
    }
  }
}

TEST(Attention, GradientsEqualThoseOfTheUnfusedFormAcrossTiles) {
  for (const AttentionShape& shape : kTiled) {
    const AttentionCase<double> c{shape};
    const auto expected = unfused_gradient(c);
    expect_close(fused_gradient(c), expected, kSameInDouble);
    expect_close(fused_gradient(in_float(c)), expected, 2e-5);
  }
}

TEST(Attention, GradientAcrossTilesEqualsTheDirectionalDifference) {
  // Checks the loss along one random direction, which shares no error with a second implementation.
  AttentionCase<double> c{{1, 2, 1, 200, 4, true}};
  const auto start = c.packed;
  const auto direction = numbers(static_cast<std::int64_t>(start.size()), 7);
  std::vector<double> step = {0};
  const auto loss = [&] {
    for (std::size_t i = 0; i < start.size(); ++i) {
      c.packed[i] = start[i] + step.front() * direction[i];
    }
    return dot(fused(c).context, c.probe);
  };
  const double expected = slopes(step, loss).front();
  c.packed = start;
  EXPECT_NEAR(dot(fused_gradient(c), direction) / expected, 1, 1e-6);
}

TEST(Attention, LargeScoresThatGrowFromTileToTileAreNoTrouble) {
  // Keys grow along the sequence, so that every tile has larger scores than all before it; exp of
  // them alone would overflow.
  AttentionCase<double> c{{1, 1, 1, 300, 8, false}};
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t i = 0; i < 16; ++i) {
      c.packed[static_cast<std::size_t>(row * c.stride + i)] =
          i < 8 ? 30 : static_cast<double>(row);
    }
  }
  // The last two keys differ by 30 * 8 / sqrt(8) = 84.9: all the weight is on the last.
  const Attended<float> actual = fused(in_float(c));
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(actual.context[static_cast<std::size_t>(row * 8 + i)],
                static_cast<float>(c.value().data[299 * c.stride + i]));
    }
  }
  const auto gradient = fused_gradient(in_float(c));
  for (const float value : gradient) EXPECT_TRUE(std::isfinite(value));
}

// The last queries of a sequence against all of its keys, as a call of their own. The others have
// no gradient of their context, and so add nothing to those of keys and values.
TEST(Attention, OfTheLastQueriesAloneEqualsTheirPartOfTheWhole) {
  constexpr std::int64_t kQueries = 170, kKeys = 300;
  for (const AttentionShape& whole :
       {AttentionShape{1, 2, 1, kKeys, 5, true}, AttentionShape{1, 2, 1, kKeys, 5, false},
        AttentionShape{1, 2, 1, kKeys, 5, true, 0, 40}}) {
    AttentionCase<double> c{whole};
    const std::int64_t before = kKeys - kQueries;
    std::fill_n(c.probe.begin(), before * c.context_width, 0.0);
    const Attended<double> all = fused(c);
    const std::vector<double> expected = fused_gradient(c);
    AttentionShape last = whole;
    last.sequence = kQueries;
    last.keys = kKeys;
    const auto rows = [&](const auto& heads) {
      return std::decay_t<decltype(heads)>{heads.data + before * heads.stride, heads.stride};
    };
    std::vector<double> context(all.context.size()), sums(static_cast<std::size_t>(2 * kQueries));
    std::vector<double> gradient(c.packed.size()), workspace(context.size());
    const Heads<double> out{context.data(), c.context_width};
    attention<double>(last, rows(c.query()), c.key(), c.value(), rows(out), sums.data());
    attention_backward<double>(
        last, rows(c.query()), c.key(), c.value(), {rows(out).data, out.stride}, sums.data(),
        {c.probe.data() + before * c.context_width, c.context_width},
        rows(Heads<double>{gradient.data(), c.stride}), {gradient.data() + c.width, c.stride},
        {gradient.data() + c.width + c.kv_width, c.stride}, workspace.data());
    for (std::int64_t row = 0; row < before; ++row) {
      std::fill_n(context.begin() + row * c.context_width, c.context_width, 0.0);
    }
    std::vector<double> wanted = all.context;
    std::fill_n(wanted.begin(), before * c.context_width, 0.0);
    expect_close(context, wanted, kSameInDouble);
    expect_close(gradient, expected, kSameInDouble);
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_NEAR(sums[static_cast<std::size_t>(h * kQueries)],
                  all.log_sum_exp[static_cast<std::size_t>(h * kKeys + before)], 1e-12);
    }
  }
}

TEST(Attention, FirstQuerySeesOnlyTheFirstKey) {
  const AttentionCase<float> c{{1, 1, 1, 140, 4, true}};
  const auto context = fused(c).context;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(context[i], c.value().data[i]);
}

TEST(Attention, GivesTheSameBitsEveryTime) {
  const AttentionCase<float> c{{1, 4, 2, 300, 8, true}};
  EXPECT_EQ(fused(c).context, fused(c).context);
  EXPECT_EQ(fused_gradient(c), fused_gradient(c));
}

}  // namespace
}  // namespace stepcast::cpu
