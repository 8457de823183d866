// SPDX-License-Identifier: Apache-2.0
// JSON for files that people review: what changes is a line of the difference.
#pragma once

#include "core/json_fwd.h"
#include "core/text/written.h"

namespace stepcast {

// An object of plain values stands on one line if it fits; any other object has a line per key. The
// text ends with a line end, and bytes that are not UTF-8 are replaced.
Written json_lines(const Json& value);

}  // namespace stepcast
