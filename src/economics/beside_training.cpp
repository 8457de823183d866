// SPDX-License-Identifier: Apache-2.0
#include "economics/beside_training.h"

#include "layout/run_settings.h"

namespace stepcast {

std::vector<TimeBeside> times_beside(const BesideSettings& beside, double tokens,
                                     Seconds training) {
  const auto& later = beside.long_context;
  const double longer = later ? later->tokens / tokens * later->token_cost : 0;
  std::vector<TimeBeside> out{
      {"bring_up", "bring-up", beside.bring_up, true},
      {"evaluation", "evaluation", beside.evaluation * training, false},
      {"thrown_away", "steps thrown away", beside.thrown_away * training, false},
      {"long_context", "long sequences", longer * training, false}};
  std::erase_if(out, [](const TimeBeside& part) { return !(part.wall.value() > 0); });
  return out;
}

}  // namespace stepcast
