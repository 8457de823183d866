// SPDX-License-Identifier: Apache-2.0
#include "sim/time.h"

#include <cmath>

#include "core/assert.h"

namespace stepcast::sim {

Duration duration(Seconds seconds) {
  STEPCAST_ASSERT(seconds.value() >= 0 && seconds.value() < 1e6, "a duration within the clock");
  return {std::llround(seconds.value() * 1e12)};
}

}  // namespace stepcast::sim
