// SPDX-License-Identifier: Apache-2.0
#include "cost/fp8_attention.h"

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

struct Speed {
  std::int64_t compute_capability;
  std::int64_t least_head;  // from this dimension of heads on
  double forward, backward;
};

// Medians over causal rows of cuDNN's training benchmark against its bf16 kernels:
// NVIDIA/cudnn-frontend, commit 3929da2ef4c1, benchmark/sdpa_benchmark_training (cuDNN 9.22 on
// GB200 and GB300, MXFP8; 9.19.1 on H200, a scale per tensor). Wide heads are those of latent
// attention, 192 for queries and keys.
constexpr std::array kSpeeds = {
    Speed{90, 0, 1.50, 0.79},    Speed{100, 160, 1.40, 1.31}, Speed{100, 0, 1.21, 0.97},
    Speed{103, 160, 1.54, 1.37}, Speed{103, 0, 1.38, 0.98},
};

}  // namespace

double fp8_attention_speed(const Accelerator& accelerator, const Attention& attention) {
  const auto found = std::ranges::find_if(kSpeeds, [&](const Speed& speed) {
    return speed.compute_capability == accelerator.compute_capability &&
           attention.head_dim >= speed.least_head;
  });
  // A device without rows gains nothing: of the two passes together none gains much.
  if (found == kSpeeds.end()) return 1;
  return attention.backward ? found->backward : found->forward;
}

}  // namespace stepcast
