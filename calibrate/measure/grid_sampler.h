// SPDX-License-Identifier: Apache-2.0
// Measures kernels of shapes that no scenario needs, for interpolation: products and attention,
// each alone on data that the cache has not seen since the call before.
#pragma once

#include "calibrate/protocol/protocol.h"
#include "core/result.h"

namespace stepcast {

struct Operation;

bool can_sample_alone(const Operation& operation);
Result<Measurement> sample_alone(const Operation& operation, const MeasurementProtocol& protocol);

}  // namespace stepcast
