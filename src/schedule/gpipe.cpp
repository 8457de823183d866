// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al. 2019, arXiv 1811.06965): all forward passes, then all backward passes. The
// bubble is (p-1)/(m+p-1); every micro-batch's activations are held at once. Backward goes in the
// order of the forward passes, as PyTorch's ScheduleGPipe and Megatron run it.
#include "schedule/generators.h"

namespace stepcast {

StageOrder gpipe_order(const Layout&, std::int64_t, std::int64_t micro_batches) {
  StageOrder order;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (std::int64_t i = 0; i < micro_batches; ++i) {
      order.push_back({pass, static_cast<std::int32_t>(i), 0});
    }
  }
  return order;
}

}  // namespace stepcast
