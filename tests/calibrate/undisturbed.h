// SPDX-License-Identifier: Apache-2.0
// Samples that nothing disturbed, and a protocol that counts the first of them.
#pragma once

#include "calibrate/protocol/protocol.h"

namespace stepcast::testing {

inline Sample clean(double seconds) { return {seconds, 1, {}}; }

inline MeasurementProtocol without_warm_up() {
  MeasurementProtocol out;
  out.warm_up_samples = 0;
  out.warm_up_s = 0;
  return out;
}

}  // namespace stepcast::testing
