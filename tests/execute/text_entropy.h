// SPDX-License-Identifier: Apache-2.0
// A model that has learnt the text still does not know this much (execute/markov_text.h): the
// entropy of successors whose probabilities are as 1 to 1/2 to 1/3 and so on.
#pragma once

#include <cmath>
#include <cstdint>

namespace stepcast::testing {

// Returns nats per token, given the one before.
inline double text_entropy_nats(std::int64_t fan_out) {
  double sum = 0, of_weights = 0;
  for (std::int64_t j = 0; j < fan_out; ++j) {
    const double weight = 1 / static_cast<double>(j + 1);
    sum += weight;
    of_weights -= weight * std::log(weight);
  }
  return std::log(sum) + of_weights / sum;
}

}  // namespace stepcast::testing
