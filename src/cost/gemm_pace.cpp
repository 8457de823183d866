// SPDX-License-Identifier: Apache-2.0
#include "cost/gemm_pace.h"

#include "cost/profile.h"

#include <algorithm>
#include <cmath>

namespace stepcast {

GemmFit among(GemmFit fit, std::int64_t gpus) {
  constexpr double kDoublings = 3;  // to the eight GPUs of a node
  if (fit.back_to_back == 0 || fit.back_to_back_alone == 0) return fit;
  const double share = std::min(1.0, std::log2(static_cast<double>(gpus)) / kDoublings);
  fit.back_to_back = fit.back_to_back_alone + share * (fit.back_to_back - fit.back_to_back_alone);
  return fit;
}

}  // namespace stepcast
