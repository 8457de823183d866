// SPDX-License-Identifier: Apache-2.0
#include "cost/gemm_pace.h"

#include "cost/profile.h"

#include <algorithm>
#include <cmath>

namespace stepcast {

namespace {

// Steps of the four runs of MLPerf Training 4.0 to 5.0 whose configuration sets the slider (NVIDIA,
// Dell, Lenovo; H100 and H200, fp8) were 8 % faster, in the mean, against their forecasts than
// those of the same rounds and GPUs without it. Products are four fifths of them.
constexpr double kBoost = 1.10;

GemmFit boosted(GemmFit fit) {
  if (fit.back_to_back > 1) fit.back_to_back = std::max(1.0, fit.back_to_back / kBoost);
  return fit;
}

}  // namespace

GemmFit among(GemmFit fit, std::int64_t gpus, bool vboost) {
  constexpr double kDoublings = 3;  // to the eight GPUs of a node
  if (fit.back_to_back > 0 && fit.back_to_back_alone > 0) {
    const double share = std::min(1.0, std::log2(static_cast<double>(gpus)) / kDoublings);
    fit.back_to_back = fit.back_to_back_alone + share * (fit.back_to_back - fit.back_to_back_alone);
  }
  return vboost ? boosted(fit) : fit;
}

}  // namespace stepcast
