// SPDX-License-Identifier: Apache-2.0
// A job that goes on without a part of its cluster, until that is back.
#pragma once

#include <string>

#include "core/result.h"

namespace stepcast {

struct DataFolders;
struct Scenario;

// The part of `--what-if fail=PART`; empty: another change.
std::string lost_part_of(const std::string& what_if);

// The scenario with this part failed or slow (cluster/failed_parts.h). Where GPUs are gone, as many
// replicas of the model go on as the others hold, those left over stand idle, and the global batch
// is the stated one or the next smaller one that the replicas can share. Errors: no such part, and
// no replica that is whole.
Result<Scenario> without_part(const Scenario& scenario, const std::string& part,
                              const DataFolders& folders);

}  // namespace stepcast
