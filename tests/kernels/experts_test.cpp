// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/numbers.h"

namespace stepcast::cpu {
namespace {

using Map = std::vector<std::int8_t>;
using Indices = std::vector<std::int64_t>;

struct Routed {
  std::vector<double> probabilities;
  Map chosen;
};

Routed routed(const RouterShape& shape, const std::vector<double>& logits,
              const std::int64_t* choice = nullptr) {
  Routed out{zeros<double>(shape.tokens * shape.experts),
             Map(static_cast<std::size_t>(shape.tokens * shape.experts), 7)};
  route<double>(shape, logits.data(), choice, out.probabilities.data(), out.chosen.data());
  return out;
}

TEST(Router, ChoosesTheLargestAndOfEqualOnesTheFirst) {
  const Routed out = routed({3, 4, 2}, {1, 3, 2, 3, /**/ 5, 5, 5, 5, /**/ -1, -2, -1, 0});
  EXPECT_EQ(out.chosen, (Map{0, 1, 0, 1, /**/ 1, 1, 0, 0, /**/ 1, 0, 0, 1}));
  const double sum = std::exp(1) + std::exp(2) + 2 * std::exp(3);
  EXPECT_NEAR(out.probabilities[1], std::exp(3) / sum, 1e-12);
  EXPECT_NEAR(out.probabilities[2], std::exp(2) / sum, 1e-12);
  EXPECT_NEAR(out.probabilities[4], 0.25, 1e-12);
}

TEST(Router, FollowsAChoiceThatIsNotItsOwn) {
  const Indices choice{0, 2, 3, 1};
  const Routed out = routed({2, 4, 2}, {1, 3, 2, 3, 5, 5, 5, 5}, choice.data());
  EXPECT_EQ(out.chosen, (Map{1, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(out.probabilities, routed({2, 4, 2}, {1, 3, 2, 3, 5, 5, 5, 5}).probabilities);
}

// Probabilities are 1/8, 1/4, 1/8 and 1/2; with the bias the order of the experts is 2, 0, 3, 1.
TEST(Router, ABiasTakesPartInTheChoiceAlone) {
  const RouterShape shape{1, 4, 2};
  const std::vector<double> logits{0, std::log(2), 0, std::log(4)}, bias{0.5, -0.25, 0.75, 0};
  Routed out = routed(shape, logits);
  const std::vector<double> probabilities = out.probabilities;
  EXPECT_EQ(out.chosen, (Map{0, 1, 0, 1}));
  route<double>(shape, logits.data(), nullptr, out.probabilities.data(), out.chosen.data(),
                bias.data());
  EXPECT_EQ(out.chosen, (Map{1, 0, 1, 0}));
  EXPECT_EQ(out.probabilities, probabilities);
}

struct Rows {
  Indices token;
  std::vector<double> weights;
};
Rows rows_of(const RouterShape& shape, const Routed& routed, std::int64_t count) {
  Rows out{Indices(static_cast<std::size_t>(count), 99), zeros<double>(count)};
  choose_rows<double>(shape, routed.probabilities.data(), routed.chosen.data(), out.token.data(),
                      out.weights.data());
  return out;
}

TEST(Router, RowsComeExpertByExpertInTheOrderOfTokens) {
  const RouterShape shape{3, 3, 2};
  const Routed out{{.5, .3, .2, .1, .2, .7, .4, .4, .2}, {1, 1, 0, 0, 1, 1, 1, 1, 0}};
  Indices counts(3);
  count_rows(shape, out.chosen.data(), counts.data());
  EXPECT_EQ(counts, (Indices{2, 3, 1}));
  const Rows rows = rows_of(shape, out, 6);
  EXPECT_EQ(rows.token, (Indices{0, 2, 0, 1, 2, 1}));
  EXPECT_EQ(rows.weights, (std::vector<double>{.5, .4, .3, .2, .4, .7}));
}

TEST(Router, ACapacityPadsAndDrops) {
  const RouterShape shape{3, 3, 2, 2};
  const Routed out{{.5, .3, .2, .1, .2, .7, .4, .4, .2}, {1, 1, 0, 0, 1, 1, 1, 1, 0}};
  Indices counts(3);
  count_rows(shape, out.chosen.data(), counts.data());
  EXPECT_EQ(counts, (Indices{2, 2, 2}));
  const Rows rows = rows_of(shape, out, 6);
  EXPECT_EQ(rows.token, (Indices{0, 2, 0, 1, 1, -1}));
  EXPECT_EQ(rows.weights, (std::vector<double>{.5, .4, .3, .2, .7, 0}));
}

// The loss is a sum of the weights of rows, each times a number.
TEST(Router, GradientsEqualCentralDifferences) {
  for (const std::int64_t capacity : {0, 2}) {
    const RouterShape shape{5, 4, 2, capacity};
    const std::int64_t count = capacity > 0 ? 4 * capacity : 10;
    auto logits = numbers(5 * 4, 1);
    const auto factors = numbers(count, 2);
    const Routed at = routed(shape, logits);
    auto gradient = zeros<double>(5 * 4);
    route_backward<double>(shape, at.probabilities.data(), at.chosen.data(), factors.data(),
                           gradient.data());
    const auto loss = [&] {
      return dot(rows_of(shape, routed(shape, logits), count).weights, factors);
    };
    expect_close(gradient, slopes(logits, loss), kSlopeTolerance);
  }
}

TEST(Rows, AreTakenPutAndAddedUp) {
  const std::vector<double> tokens{1, 2, 3, 4, 5, 6};
  const Indices index{2, -1, 0, 2};
  std::vector<double> rows(8, 9);
  take_rows(tokens.data(), index.data(), rows.data(), 4, 2);
  EXPECT_EQ(rows, (std::vector<double>{5, 6, 0, 0, 1, 2, 5, 6}));
  std::vector<double> sums(6, 9);
  add_rows(rows.data(), index.data(), sums.data(), 4, 3, 2);
  EXPECT_EQ(sums, (std::vector<double>{1, 2, 0, 0, 10, 12}));
  const Indices order{1, 2, 0};
  std::vector<double> sorted(6), back(6);
  take_rows(tokens.data(), order.data(), sorted.data(), 3, 2);
  EXPECT_EQ(sorted, (std::vector<double>{3, 4, 5, 6, 1, 2}));
  put_rows(sorted.data(), order.data(), back.data(), 3, 2);
  EXPECT_EQ(back, tokens);
}

TEST(ExpertActivation, GradientsEqualCentralDifferences) {
  for (const ActivationKind kind : {ActivationKind::kGelu, ActivationKind::kSwiglu}) {
    constexpr std::int64_t kRows = 3, kUnits = 5;
    const std::int64_t ups = (kind == ActivationKind::kSwiglu ? 2 : 1) * kUnits;
    auto up = numbers(kRows * ups, 1), weights = numbers(kRows, 2);
    const auto probe = numbers(kRows * kUnits, 3);
    auto of_up = zeros<double>(kRows * ups), of_weights = zeros<double>(kRows);
    expert_activation_backward<double>(kind, up.data(), weights.data(), probe.data(), of_up.data(),
                                       of_weights.data(), kRows, kUnits);
    const auto loss = [&] {
      auto out = zeros<double>(kRows * kUnits);
      expert_activation<double>(kind, up.data(), weights.data(), out.data(), kRows, kUnits);
      return dot(out, probe);
    };
    expect_close(of_up, slopes(up, loss), kSlopeTolerance);
    expect_close(of_weights, slopes(weights, loss), kSlopeTolerance);
  }
}

}  // namespace
}  // namespace stepcast::cpu
