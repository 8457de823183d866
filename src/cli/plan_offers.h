// SPDX-License-Identifier: Apache-2.0
// `plan` across clusters and numbers of GPUs.
#pragma once

#include <vector>

#include "cli/output.h"
#include "cli/plan_flags.h"
#include "core/json_fwd.h"

namespace stepcast::cli {

// Takes --gpus out of the flags when it names several numbers; none: it does not.
Result<std::vector<std::int64_t>> take_gpu_counts(PlanFlags& flags);

// Whether flags and scenario ask for more than one cluster of one size.
bool asks_for_offers(const std::vector<std::int64_t>& counts, const PlanFlags& flags,
                     const SortedJson& scenario);

// Searches, prints, and returns the exit code.
int plan_offers(PlanFlags& flags, std::vector<std::int64_t> counts, const SortedJson& scenario,
                const DataRoot& data, Output& output);

}  // namespace stepcast::cli
