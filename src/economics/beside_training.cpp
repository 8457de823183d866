// SPDX-License-Identifier: Apache-2.0
#include "economics/beside_training.h"

#include "layout/run_settings.h"

namespace stepcast {

std::vector<TimeBeside> times_beside(const BesideSettings& beside, double tokens,
                                     Seconds training) {
  std::vector<TimeBeside> out;
  const auto add = [&](const char* key, const char* label, Seconds wall, bool is_fixed) {
    if (wall.value() > 0) out.push_back({key, label, wall, is_fixed});
  };
  add("bring_up", "bring-up", beside.bring_up, true);
  add("evaluation", "evaluation", beside.evaluation * training, false);
  add("thrown_away", "steps thrown away", beside.thrown_away * training, false);
  if (beside.long_context) {
    const double share = beside.long_context->tokens / tokens * beside.long_context->token_cost;
    add("long_context", "long sequences", share * training, false);
  }
  return out;
}

}  // namespace stepcast
