// SPDX-License-Identifier: Apache-2.0
// How sure a step time is. Each cost curve has one log-error that everything priced from it shares,
// so Var(ln T) = sum over curves of (its share of the time x its sigma)^2, plus the square of what
// no curve holds; low and high bound the central 90 % (docs/design/010-intervals.md).
#pragma once

#include <array>
#include <utility>

#include "core/quantity.h"
#include "cost/provenance.h"

namespace stepcast {

std::pair<Seconds, Seconds> interval90(Seconds step_time,
                                       const std::array<Seconds, kCurves>& time_by_curve,
                                       const std::array<double, kCurves>& sigma);

}  // namespace stepcast
