// SPDX-License-Identifier: Apache-2.0
#include "execute/markov_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "core/assert.h"
#include "core/seeded_random.h"

namespace stepcast {
namespace {

// Each use of a seed has a random stream of its own; sequences have those from kSequences on.
constexpr std::uint64_t kPermutation = 0;
constexpr std::uint64_t kOffsets = 1;
constexpr std::uint64_t kSequences = 2;

// Fisher and Yates.
std::vector<std::int64_t> permutation(SeededRandom random, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(out[static_cast<std::size_t>(i)], out[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return out;
}

// Floyd's sample without repetitions (Bentley and Floyd, CACM 30, 1987): every value that is drawn
// twice makes room for the largest so far, which is new.
std::vector<std::int64_t> different(SeededRandom random, std::int64_t count, std::int64_t below) {
  std::unordered_set<std::int64_t> seen;
  std::vector<std::int64_t> out;
  for (std::int64_t largest = below - count; largest < below; ++largest) {
    const std::int64_t drawn = random.below(largest + 1);
    out.push_back(seen.insert(drawn).second ? drawn : largest);
    seen.insert(out.back());
  }
  return out;
}

std::vector<double> zipf_cumulative(std::int64_t count) {
  std::vector<double> out;
  double sum = 0;
  for (std::int64_t j = 0; j < count; ++j) out.push_back(sum += 1 / static_cast<double>(j + 1));
  for (double& value : out) value /= sum;
  return out;
}

}  // namespace

MarkovText::MarkovText(std::uint64_t seed, std::int64_t vocabulary, std::int64_t fan_out)
    : seed_(seed), vocabulary_(vocabulary) {
  STEPCAST_ASSERT(fan_out >= 1 && fan_out <= vocabulary, "different successors for each token");
  permutation_ = permutation(SeededRandom(seed, kPermutation), vocabulary);
  offsets_ = different(SeededRandom(seed, kOffsets), fan_out, vocabulary);
  cumulative_ = zipf_cumulative(fan_out);
}

std::int64_t MarkovText::successor(std::int64_t token, std::int64_t j) const {
  const std::int64_t sum =
      permutation_[static_cast<std::size_t>(token)] + offsets_[static_cast<std::size_t>(j)];
  return sum < vocabulary_ ? sum : sum - vocabulary_;
}

void MarkovText::sequence(std::int64_t index, std::span<std::int64_t> tokens) const {
  STEPCAST_ASSERT(index >= 0, "sequences are counted from 0");
  SeededRandom random(seed_, kSequences + static_cast<std::uint64_t>(index));
  std::int64_t token = random.below(vocabulary_);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = token;
    const auto drawn =
        std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, random.uniform());
    token = successor(token, drawn - cumulative_.begin());
  }
}

}  // namespace stepcast
