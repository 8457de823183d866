// SPDX-License-Identifier: Apache-2.0
#include "execute/expert_spread.h"

#include <utility>

#include "core/assert.h"
#include "core/seeded_random.h"
#include "program/expert_shape.h"

namespace stepcast {
namespace {

// Fisher and Yates.
void shuffle(std::vector<std::int64_t>& values, SeededRandom& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1],
              values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
}

}  // namespace

ExpertSpread spread_of(const Scenario& scenario) {
  const Shape shape(scenario);
  const ExpertShape experts(scenario, shape);
  return {experts.experts, experts.top_k, experts.tokens,
          shape.batch,     experts.ranks, experts.favoured_rows()};
}

ExpertChoice::ExpertChoice(const ExpertSpread& spread, std::uint64_t seed) : spread_(spread) {
  SeededRandom random(seed, 0);
  const std::int64_t fullest = random.below(spread.ranks);
  for (std::int64_t expert = 0; expert < spread.experts; ++expert) {
    (expert / spread.of_rank() == fullest ? favoured_ : others_).push_back(expert);
  }
  shuffle(favoured_, random);
  shuffle(others_, random);
}

void ExpertChoice::choose(std::int64_t sequence, std::int64_t position, std::int64_t length,
                          std::span<std::int64_t> out) const {
  STEPCAST_ASSERT(static_cast<std::int64_t>(out.size()) == spread_.top_k, "one for each row");
  const std::int64_t token = (sequence % spread_.sequences * length + position) % spread_.period;
  const auto before = [&](std::int64_t i) { return i * spread_.favoured / spread_.period; };
  const std::int64_t first = before(token), count = before(token + 1) - first;
  for (std::int64_t i = 0; i < spread_.top_k; ++i) {
    const bool is_favoured = i < count;
    const std::vector<std::int64_t>& from = is_favoured ? favoured_ : others_;
    const std::int64_t turn = is_favoured ? first + i : token * spread_.top_k - first + i - count;
    out[static_cast<std::size_t>(i)] =
        from[static_cast<std::size_t>(turn % static_cast<std::int64_t>(from.size()))];
  }
}

}  // namespace stepcast
