// SPDX-License-Identifier: Apache-2.0
// One stage while passes are put on it one behind the other: what stands so far, until when it is
// busy, how long it has been idle, and how much it holds.
#pragma once

#include <algorithm>

#include "schedule/pass.h"

namespace stepcast {

struct StageClock {
  StageOrder order;
  double begin = 0, end = 0;
  double idle = 0;  // since its first pass
  double held = 0;  // in the unit of whoever puts passes

  // Runs a pass once its input is there, and returns its end.
  double put(const Slot& slot, double arrives, double takes) {
    const double start = std::max(end, arrives);
    if (order.empty()) {
      begin = start;
    } else {
      idle += start - end;
    }
    end = start + takes;
    order.push_back(slot);
    return end;
  }
};

// The longest that any of them has been idle.
template <class Stages>
double most_idle(const Stages& stages) {
  double out = 0;
  for (const auto& stage : stages) out = std::max(out, stage.idle);
  return out;
}

}  // namespace stepcast
