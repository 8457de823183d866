// SPDX-License-Identifier: Apache-2.0
// Reads what one document says of a profile, without the host costs beside it.
#pragma once

#include "core/json.h"
#include "cost/profile.h"

namespace stepcast {

// Errors stay in the document.
Profile read_profile(JsonDocument& document);

}  // namespace stepcast
