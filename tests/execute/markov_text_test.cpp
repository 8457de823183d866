// SPDX-License-Identifier: Apache-2.0
#include "execute/markov_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "text_entropy.h"

namespace stepcast {
namespace {

using testing::text_entropy_nats;
using Tokens = std::vector<std::int64_t>;

Tokens tokens_of(const MarkovText& text, std::int64_t index, std::size_t count) {
  Tokens out(count);
  text.sequence(index, out);
  return out;
}

TEST(MarkovText, EntropyIsThatOfTheSuccessorsProbabilities) {
  // Weights 1, 1/2: q = 2/3, 1/3. H = log 3 - 2/3 log 2.
  EXPECT_NEAR(text_entropy_nats(2), std::log(3.0) - 2.0 / 3 * std::log(2.0), 1e-12);
  EXPECT_EQ(text_entropy_nats(1), 0);
}

TEST(MarkovText, SuccessorsOfATokenAreDifferent) {
  for (const auto& [vocabulary, fan_out] :
       {std::pair{97, 8}, std::pair{64, 64}, std::pair{2, 2}, std::pair{1, 1}}) {
    const MarkovText text(3, vocabulary, fan_out);
    for (std::int64_t token = 0; token < vocabulary; ++token) {
      std::set<std::int64_t> successors;
      for (std::int64_t j = 0; j < fan_out; ++j) successors.insert(text.successor(token, j));
      EXPECT_EQ(successors.size(), static_cast<std::size_t>(fan_out));
      EXPECT_GE(*successors.begin(), 0);
      EXPECT_LT(*successors.rbegin(), vocabulary);
    }
  }
}

TEST(MarkovText, EveryRankOfSuccessorIsAPermutation) {
  // So that the uniform distribution is stationary.
  const MarkovText text(4, 101, 5);
  for (std::int64_t j = 0; j < 5; ++j) {
    std::set<std::int64_t> reached;
    for (std::int64_t token = 0; token < 101; ++token) reached.insert(text.successor(token, j));
    EXPECT_EQ(reached.size(), 101u);
  }
}

TEST(MarkovText, TheEmpiricalConditionalEntropyApproachesTheExactOne) {
  // V = 64, F = 4, N = 400,000 pairs. The surprises -log q_j are independent, of variance
  // sum q (log q)^2 - H^2 = 0.20: standard error 0.0007. The plug-in estimate is low by
  // V (F-1)/(2N) = 0.00024 (Miller and Madow).
  const MarkovText text(9, 64, 4);
  std::map<std::pair<std::int64_t, std::int64_t>, double> pairs;
  std::map<std::int64_t, double> firsts;
  const std::size_t length = 400;
  for (std::int64_t index = 0; index < 1000; ++index) {
    const Tokens tokens = tokens_of(text, index, length + 1);
    for (std::size_t i = 0; i < length; ++i) {
      ++pairs[{tokens[i], tokens[i + 1]}];
      ++firsts[tokens[i]];
    }
  }
  EXPECT_EQ(pairs.size(), 64u * 4u);  // nothing but successors, and all of them
  double entropy = 0;
  const double total = 1000 * 400;
  for (const auto& [pair, count] : pairs) {
    entropy -= count / total * std::log(count / firsts[pair.first]);
  }
  EXPECT_NEAR(entropy, text_entropy_nats(4), 5 * 0.0007 + 0.00024);
}

TEST(MarkovText, TokensAreEquallyFrequentAtEveryPlace) {
  // 20,000 sequences over 10 tokens: mean 2000, deviation sqrt(20000 * 0.09) = 42.
  const MarkovText text(2, 10, 3);
  std::map<std::int64_t, int> first, last;
  for (std::int64_t index = 0; index < 20000; ++index) {
    const Tokens tokens = tokens_of(text, index, 5);
    ++first[tokens.front()];
    ++last[tokens.back()];
  }
  for (std::int64_t token = 0; token < 10; ++token) {
    EXPECT_NEAR(first[token], 2000, 5 * 42);
    EXPECT_NEAR(last[token], 2000, 5 * 42);
  }
}

TEST(MarkovText, ASequenceDependsOnSeedAndIndexAlone) {
  const MarkovText text(5, 50000, 16), same(5, 50000, 16), other(6, 50000, 16);
  const Tokens seventh = tokens_of(text, 7, 65);
  for (std::int64_t index = 20; index >= 0; --index) tokens_of(same, index, 33);
  EXPECT_EQ(tokens_of(same, 7, 65), seventh);
  EXPECT_NE(tokens_of(text, 8, 65), seventh);
  EXPECT_NE(tokens_of(other, 7, 65), seventh);
  // A shorter one is its beginning.
  EXPECT_EQ(tokens_of(text, 7, 10), Tokens(seventh.begin(), seventh.begin() + 10));
}

TEST(MarkovText, ThreadsShareOneSource) {
  const MarkovText text(5, 1000, 8);
  std::vector<Tokens> alone, together(8);
  for (std::int64_t i = 0; i < 8; ++i) alone.push_back(tokens_of(text, i, 500));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { together[i] = tokens_of(text, static_cast<std::int64_t>(i), 500); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace stepcast
