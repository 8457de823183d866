// SPDX-License-Identifier: Apache-2.0
// ZB-H1 (Qi et al. 2024, arXiv 2401.10241, section 2.3 and figure 3): 1F1B whose backward is split.
// Input gradients go where 1F1B has its backwards. Weight gradients of stage i follow i input
// gradients later and fill what was idle at the end. A stage of layers holds as much as under 1F1B;
// the last one keeps the gradients of its logits until their weight gradient.
#include <algorithm>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

StageOrder order(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t micro_batches = pipeline.micro_batches;
  const std::int64_t warm_up = std::min(pipeline.stages - stage - 1, micro_batches);
  StageOrder out;
  const auto add = [&](Pass pass, std::int64_t i) {
    out.push_back({pass, static_cast<std::int32_t>(i), 0});
  };
  for (std::int64_t i = 0; i < warm_up; ++i) add(Pass::kForward, i);
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    if (i + warm_up < micro_batches) add(Pass::kForward, i + warm_up);
    add(Pass::kInputGradient, i);
    if (i >= stage) add(Pass::kWeightGradient, i - stage);
  }
  for (std::int64_t i = std::max<std::int64_t>(0, micro_batches - stage); i < micro_batches; ++i) {
    add(Pass::kWeightGradient, i);
  }
  return out;
}

}  // namespace

extern const Schedule kZbH1 = {.name = "zb-h1",
                               .order = order,
                               .splits_backward = true,
                               .bubble = "(p-1)(f+b-w)/(m(f+b+w)+(p-1)(f+b-w))",
                               .in_flight = "min(p, m)",
                               .source = "Qi et al. 2024, section 2.3"};

}  // namespace stepcast
