// SPDX-License-Identifier: Apache-2.0
// A global batch for a plan that states none.
#pragma once

#include <optional>
#include <string>

#include "core/json_fwd.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::cli {

// Puts a batch into a scenario that states its tokens and no batch, and says which and why.
// Nothing: there is one, or not enough is known of the run.
std::optional<std::string> propose_batch(const DataFolders& folders, SortedJson& scenario);

}  // namespace stepcast::cli
