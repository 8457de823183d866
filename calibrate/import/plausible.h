// SPDX-License-Identifier: Apache-2.0
// Refuses what no device can have done: an import whose unit or shape is wrong ends here instead of
// in a profile. Each returns why not, and nothing for what is possible.
#pragma once

#include <optional>
#include <string>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_memory_bound.h"
#include "cost/collective_curve.h"
#include "operation/collective_kind.h"

namespace stepcast {

// `operands` is the type of the product's; the sample's efficiency is of the dense peak.
std::optional<std::string> why_implausible(const Accelerator& device, const GemmSample& sample,
                                           DataType operands);
std::optional<std::string> why_implausible(const Accelerator& device,
                                           const AttentionMeasurement& point);
std::optional<std::string> why_implausible(const Accelerator& device, const TimedKernel& point);
// A collective of `ranks` GPUs on `nodes` nodes.
std::optional<std::string> why_implausible(const ClusterSpec& cluster, CollectiveKind kind,
                                           std::int64_t ranks, std::int64_t nodes,
                                           const CollectiveSample& sample);

}  // namespace stepcast
