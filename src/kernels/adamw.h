// SPDX-License-Identifier: Apache-2.0
// The settings of an update of weights, and how far gradients are clipped before it.
#pragma once

#include <algorithm>
#include <cmath>

namespace stepcast {

struct AdamW {  // Loshchilov and Hutter 2019
  double learning_rate = 3e-4;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

// Gradients are multiplied by it: they are clipped as frameworks do by default, to a norm of 1.
inline constexpr double kLargestNorm = 1, kNormSlack = 1e-6;
inline double clip_factor(double squared_norm) {
  return std::min(1.0, kLargestNorm / (std::sqrt(squared_norm) + kNormSlack));
}

}  // namespace stepcast
