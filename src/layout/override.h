// SPDX-License-Identifier: Apache-2.0
// `--set path=value`: one key of a scenario, set before it is read.
#pragma once

#include <string_view>

#include "core/error.h"
#include "core/json_fwd.h"

namespace stepcast {

// Sets the key at a dotted path ("layout.tp"), making the objects on the way. The value is read as
// JSON ("8", "true", "[1,2]"), else taken as text ("1f1b"). Errors: an empty path or part of it, a
// path through something that is not an object, an object whose text is not whole.
Errors apply_override(SortedJson& document, std::string_view path, std::string_view value);

}  // namespace stepcast
