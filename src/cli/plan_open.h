// SPDX-License-Identifier: Apache-2.0
// --open and --why-not: keys of a scenario's layout that its file fixes, and that `plan` searches
// all the same.
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

// For a question about some keys ("tp=8,pp=1") whose layouts these rules refuse: takes what must
// change with them out of the scenario, which are the keys that the rules name, and after them
// those that share the GPUs, the passes and the experts. Returns their names; none is left, then
// empty.
std::vector<std::string> open_dependants(const Errors& rules, const std::string& question,
                                         SortedJson& scenario);

}  // namespace stepcast::cli
