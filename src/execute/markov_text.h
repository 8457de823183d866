// SPDX-License-Identifier: Apache-2.0
// Text to train on whose loss is known in advance: a Markov chain over `vocabulary` tokens. Each
// token has `fan_out` successors, the j-th with probability proportional to 1/(j+1) (Zipf), so a
// model that has learnt the chain has the cross-entropy H below, one that knows only how often
// tokens occur has log(vocabulary), and no model does better than the first.
//
// Derivation. The j-th successor of t is
//
//   s_j(t) = (p(t) + o_j) mod V,   p a permutation of the tokens, o_0 .. o_(F-1) different
//
// with p and o drawn from the seed. Successors of one token are different because the o_j are, so
// the distribution after t has the probabilities of j and the entropy H = -sum_j q_j log q_j. It is
// the same for every t; the entropy rate, the mean of H over the stationary distribution, is H
// (Cover and Thomas, Elements of Information Theory, 2nd edition, theorem 4.2.4). And each s_j is a
// permutation of the tokens, so the uniform distribution is stationary: sequences start with it,
// and every token is as frequent as every other at every place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

class MarkovText {
 public:
  // 1 <= fan_out <= vocabulary.
  MarkovText(std::uint64_t seed, std::int64_t vocabulary, std::int64_t fan_out);

  // Fills `tokens`; for a sequence of length n with its targets, the inputs shifted by one, that is
  // n+1. A function of the seed and `index` alone. May be called by several threads at once.
  void sequence(std::int64_t index, std::span<std::int64_t> tokens) const;

  std::int64_t successor(std::int64_t token, std::int64_t j) const;

 private:
  std::uint64_t seed_;
  std::int64_t vocabulary_;
  std::vector<std::int64_t> permutation_;
  std::vector<std::int64_t> offsets_;
  std::vector<double> cumulative_;  // of the probabilities, the last one 1
};

}  // namespace stepcast
