// SPDX-License-Identifier: Apache-2.0
// Which experts tokens go to where a seed chooses, not the router's scores: as many rows to every
// expert, or to the experts of one rank as many more as the model's imbalance says. It is what
// Megatron's --moe-router-force-load-balancing is for, with no chance in it: the rows of every rank
// are those of the forecast, and a rounding error never sends a token elsewhere.
//
// Tokens are counted inside a rank's share of a micro-batch, `period` of them, and take experts in
// turn. The i-th takes its share of the `favoured` rows, those to the fullest rank's experts:
// floor((i + 1) f / p) - floor(i f / p) of them with f favoured rows of p tokens, the rest from the
// other experts. Both go round their experts, whose order the seed shuffles, so that no token has
// an expert twice and each expert has as many rows as the next, or one more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

struct Scenario;

// How a layout spreads rows. Another layout that is held against it spreads them likewise.
struct ExpertSpread {
  std::int64_t experts, top_k;
  std::int64_t period;     // tokens
  std::int64_t sequences;  // of a micro-batch
  std::int64_t ranks;      // that experts are dealt among
  std::int64_t favoured;   // rows of a period to the experts of the fullest rank

  std::int64_t of_rank() const { return experts / ranks; }  // experts
};
ExpertSpread spread_of(const Scenario& scenario);  // of a model with experts

class ExpertChoice {
 public:
  ExpertChoice(const ExpertSpread& spread, std::uint64_t seed);

  // The experts of the token at `position` of a sequence, counted over the step.
  void choose(std::int64_t sequence, std::int64_t position, std::int64_t length,
              std::span<std::int64_t> out) const;

 private:
  ExpertSpread spread_;
  std::vector<std::int64_t> favoured_, others_;  // experts
};

}  // namespace stepcast
