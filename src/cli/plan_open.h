// SPDX-License-Identifier: Apache-2.0
// --open: keys of a scenario's layout that its file fixes, and that `plan` searches all the same.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json_fwd.h"

namespace stepcast::cli {

// Takes these keys ("tp", "recompute"; "all") out of the scenario's layout, and what follows from
// them, except for paths that flags give. Errors, at "--open": keys that no search varies, and
// those that a flag fixes.
Errors open_keys(const std::vector<std::string>& keys, const std::set<std::string>& given,
                 SortedJson& scenario);

}  // namespace stepcast::cli
