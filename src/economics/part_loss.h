// SPDX-License-Identifier: Apache-2.0
// A job that goes on without a part of its cluster loses this until the part is back.
#pragma once

#include "core/quantity.h"

namespace stepcast {

struct PartLoss {
  double tokens_per_s;  // fewer than the whole cluster does
  double tokens;        // until the part is back
  Seconds of_all;       // so long the whole cluster takes for these
};

// Tokens per second of the whole cluster and of what is left; `away`: until the part is back.
inline PartLoss part_loss(double whole, double left, Seconds away) {
  const double lost = whole - left;
  return {lost, lost * away.value(), whole > 0 ? away * (lost / whole) : Seconds(0)};
}

}  // namespace stepcast
