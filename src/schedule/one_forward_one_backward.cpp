// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-Flush; Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1): a stage runs
// ahead by the stages behind it, then alternates. Same bubble as GPipe; stage i holds min(p-i, m).
#include <algorithm>

#include "schedule/generators.h"

namespace stepcast {

StageOrder one_forward_one_backward_order(const Layout& layout, std::int64_t stage,
                                          std::int64_t micro_batches) {
  const std::int64_t warm_up = std::min(layout.pp - stage - 1, micro_batches);
  StageOrder order;
  const auto add = [&](Pass pass, std::int64_t i) {
    order.push_back({pass, static_cast<std::int32_t>(i), 0});
  };
  for (std::int64_t i = 0; i < warm_up; ++i) add(Pass::kForward, i);
  for (std::int64_t i = 0; i + warm_up < micro_batches; ++i) {
    add(Pass::kForward, i + warm_up);
    add(Pass::kBackward, i);
  }
  for (std::int64_t i = micro_batches - warm_up; i < micro_batches; ++i) add(Pass::kBackward, i);
  return order;
}

}  // namespace stepcast
