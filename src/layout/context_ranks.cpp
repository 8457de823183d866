// SPDX-License-Identifier: Apache-2.0
#include "layout/context_ranks.h"

#include <algorithm>

#include "layout/layout.h"
#include "layout/scenario.h"

namespace stepcast {

void settle_context(Scenario& scenario) {
  Layout& l = scenario.layout;
  l.cp_exchange = l.cp_method == ContextMethod::kAllToAll ? l.cp : 1;
  if (l.cp_method != ContextMethod::kHierarchical) return;
  const std::int64_t near =
      std::max<std::int64_t>(1, scenario.cluster.spec.gpus_per_domain() / l.tp);
  const std::int64_t heads = std::max<std::int64_t>(1, scenario.model.heads / l.tp);
  const std::int64_t kv_heads = std::max<std::int64_t>(1, scenario.model.kv_heads / l.tp);
  for (std::int64_t ranks = 2; ranks <= std::min(near, l.cp); ++ranks) {
    if (l.cp % ranks == 0 && heads % ranks == 0 && kv_heads % ranks == 0) l.cp_exchange = ranks;
  }
}

}  // namespace stepcast
