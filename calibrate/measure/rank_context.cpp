// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/rank_context.h"

namespace stepcast {

bool on_any_rank(const RankContext& rank, bool here) {
  float flag = here ? 1.0F : 0.0F;
  rank.world.all_reduce({&flag, 1}, Reduction::kMaximum);
  return flag > 0;
}

double over_all_ranks(const RankContext& rank, double here) {
  auto sum = static_cast<float>(here);
  rank.world.all_reduce({&sum, 1}, Reduction::kSum);
  return sum;
}

}  // namespace stepcast
