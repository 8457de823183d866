// SPDX-License-Identifier: Apache-2.0
// Which ranks others wait for. The kernel of a collective runs from its rank's arrival to the
// common end, so what lies before the last arrival is waiting, and only the rest is transfer.
#pragma once

#include <map>

#include "diagnose/rank_timeline.h"

namespace stepcast {

struct RankWaits {
  std::map<std::int32_t, double> waited_s;  // by label: of this rank, for others
  std::map<RankId, double> caused_s;        // by rank: of that, where it came last
  std::int64_t matched = 0;                 // calls that another trace has, too
};

// For `timelines[own]` in its step `steps[own]`. Clocks of hosts differ: ranks are aligned at the
// ends of what they did together.
RankWaits waits_of(const std::vector<Timeline>& timelines, const std::vector<Window>& steps,
                   std::size_t own, const Labels& labels, const RankGrid& grid);

}  // namespace stepcast
