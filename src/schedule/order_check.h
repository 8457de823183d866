// SPDX-License-Identifier: Apache-2.0
// Whether orders that a user wrote can run at all: every pass once, and no stage waiting for ever.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "schedule/pass.h"

namespace stepcast {

struct Pipeline;

// Each chunk's micro-batches run forward once, then backward once (whole, or the input's and then
// the weights' gradient), and no stages wait for each other in a circle; `file` goes into the
// errors.
Errors check_orders(const std::vector<StageOrder>& orders, const Pipeline& pipeline,
                    const std::string& file);

}  // namespace stepcast
