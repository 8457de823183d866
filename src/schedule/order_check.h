// SPDX-License-Identifier: Apache-2.0
// Whether orders that a user wrote can run at all: every pass once, and no stage waiting for ever.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "schedule/schedule.h"

namespace stepcast {

const char* name_of(Pass pass);  // "forward"

// Each chunk's micro-batches forward once, then backward once (whole, or the input's and then the
// weights' gradient); all stages together free of circular waits. `file` goes into the errors.
Errors check_orders(const std::vector<StageOrder>& orders, const Layout& layout,
                    std::int64_t micro_batches, const std::string& file);

}  // namespace stepcast
