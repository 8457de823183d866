// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-Flush; Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1): a stage runs
// ahead by the stages behind it, then alternates. Same bubble as GPipe; stage i holds min(p-i, m).
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
  for (std::int64_t i = 0; i + warm_up < micro_batches; ++i) {
    add(Pass::kForward, i + warm_up);
    add(Pass::kBackward, i);
  }
  for (std::int64_t i = micro_batches - warm_up; i < micro_batches; ++i) add(Pass::kBackward, i);
  return out;
}

}  // namespace

extern const Schedule kOneForwardOneBackward = {.name = "1f1b",
                                                .order = order,
                                                .pairs = Pairs::kBackwardForward,
                                                .search_place = 0,
                                                .bubble = "(p-1)/(m+p-1)",
                                                .in_flight = "min(p, m)",
                                                .source = "Narayanan et al. 2021, section 2.2.1"};

}  // namespace stepcast
