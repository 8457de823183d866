// SPDX-License-Identifier: Apache-2.0
// How a seed spreads rows over experts, and where rows lie on the ranks that receive them.
#include "execute/expert_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "execute/expert_spread.h"
#include "variant_case.h"

namespace stepcast {
namespace {

using testing::variant;
using testing::VariantCase;
using Counts = std::vector<std::int64_t>;

Counts counts_of(const ExpertSpread& spread, std::uint64_t seed) {
  const ExpertChoice choice(spread, seed);
  Counts out(static_cast<std::size_t>(spread.experts));
  std::vector<std::int64_t> of_token(static_cast<std::size_t>(spread.top_k));
  for (std::int64_t token = 0; token < spread.period; ++token) {
    choice.choose(0, token, spread.period, of_token);
    EXPECT_EQ(std::set(of_token.begin(), of_token.end()).size(), of_token.size());
    for (const std::int64_t expert : of_token) ++out[static_cast<std::size_t>(expert)];
  }
  return out;
}

TEST(ExpertSpread, IsEven) {
  const ExpertSpread spread{8, 3, 16, 1, 4, 12};  // experts, top_k, period, sequences, ranks
  EXPECT_EQ(counts_of(spread, 1), Counts(8, 6));
  EXPECT_EQ(counts_of(spread, 2), Counts(8, 6));
}

TEST(ExpertSpread, FavoursTheExpertsOfOneRankAsTheModelSays) {
  const ExpertSpread spread{8, 2, 32, 1, 4, 24};  // 1.5 times the 16 of an even one
  std::set<std::size_t> fullest;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Counts counts = counts_of(spread, seed);
    std::vector<std::int64_t> of_rank;
    for (std::size_t e = 0; e < 8; e += 2) of_rank.push_back(counts[e] + counts[e + 1]);
    const auto most = std::ranges::max_element(of_rank);
    fullest.insert(static_cast<std::size_t>(most - of_rank.begin()));
    EXPECT_EQ(*most, 24);
    for (const std::int64_t rows : of_rank) {
      if (rows == 24) continue;
      EXPECT_LE(std::abs(rows - 13), 1);  // 40 rows over 6 experts: 6 or 7 each
    }
    EXPECT_EQ(std::ranges::count(of_rank, 24), 1);
  }
  EXPECT_EQ(fullest.size(), 4U);  // the seed says which
}

TEST(ExpertSpread, OfAScenarioFillsTheRoomOfTheFullestRank) {
  VariantCase c;
  c.dp = c.ep = 4;
  c.experts = true;
  c.zero = 1;
  for (const double imbalance : {1.0, 1.25, 2.0}) {
    c.model = fmt::format(R"(,"moe":{{"experts":8,"top_k":2,"ffn":24,"imbalance":{}}})", imbalance);
    const Scenario scenario = variant(c);
    const Shape shape(scenario);
    const ExpertShape experts(scenario, shape);
    Counts all;  // every rank spreads its own rows so
    for (int rank = 0; rank < 4; ++rank) {
      const Counts own = counts_of(spread_of(scenario), 1);
      all.insert(all.end(), own.begin(), own.end());
    }
    std::int64_t most = 0;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      most = std::max(most, ExpertRows(experts, {rank, 0}, all).received());
    }
    EXPECT_EQ(most, experts.received) << imbalance;
  }
}

// Two ranks, two experts on each; rank 0 has 3, 1, 2, 0 rows for them and rank 1 1, 2, 0, 2.
TEST(ExpertRows, LieExpertByExpertWhereProductsReadThem) {
  VariantCase c;
  c.model = R"(,"moe":{"experts":4,"top_k":2,"ffn":24,"imbalance":2})";
  c.dp = c.ep = 2;
  c.experts = true;
  c.zero = 1;
  const Scenario scenario = variant(c);
  const ExpertShape shape(scenario, Shape(scenario));
  const Counts counts{3, 1, 2, 0, 1, 2, 0, 2};
  const ExpertRows first(shape, {0, 0}, counts), second(shape, {1, 0}, counts);
  EXPECT_EQ(first.sent(), 6);
  EXPECT_EQ(first.received(), 7);
  EXPECT_EQ(second.received(), 4);
  EXPECT_EQ(first.received_from()[1].begin, 4);
  EXPECT_EQ(second.sent_to()[1].begin, 3);
  EXPECT_FALSE(first.is_even());
  EXPECT_EQ(first.begins(), (Counts{0, 4, 7}));
  EXPECT_EQ(first.order(), (Counts{0, 1, 2, 4, 3, 5, 6}));
  EXPECT_EQ(second.begins(), (Counts{0, 2, 4}));
  EXPECT_EQ(second.order(), (Counts{0, 1, 2, 3}));
}

TEST(ExpertRows, ThatDoNotFitAreAnError) {
  VariantCase c;
  c.model = R"(,"moe":{"experts":4,"top_k":2,"ffn":24})";
  c.dp = c.ep = 2;
  c.experts = true;
  c.zero = 1;
  const Scenario scenario = variant(c);
  const ExpertShape shape(scenario, Shape(scenario));
  const std::int64_t fair = shape.sent / 4;
  Counts counts(8, fair);
  EXPECT_TRUE(ExpertRows(shape, {0, 0}, counts).is_even());
  ++counts[0];
  --counts[3];
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    try {
      ExpertRows(shape, {rank, 0}, counts);
      ADD_FAILURE() << "rank 0 has no room";
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("model.moe.imbalance"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace stepcast
