// SPDX-License-Identifier: Apache-2.0
#include "sim/time.h"

#include <cmath>

#include "core/assert.h"
#include "sim/clock_end.h"

namespace stepcast::sim {

Duration duration(Seconds seconds) {
  const double ps = seconds.value() * 1e12;
  STEPCAST_ASSERT(!(ps < 0), "time does not run backwards");
  if (!(ps < static_cast<double>(kLongestDuration.ps))) return kLongestDuration;
  return {std::llround(ps)};
}

}  // namespace stepcast::sim
