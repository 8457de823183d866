// SPDX-License-Identifier: Apache-2.0
// The native model object: docs/formats/model.md lists its keys.
#pragma once

#include "core/json.h"
#include "model/model.h"

namespace stepcast {

Model read_native_model(const JsonValue& value);

}  // namespace stepcast
