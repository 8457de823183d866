// SPDX-License-Identifier: Apache-2.0
// Reads what one document says of recorded runs, and of one rank of a run.
#pragma once

#include "validate/rank_file.h"
#include "validate/suite.h"

namespace stepcast {

struct Program;

Result<Suite> read_suite(JsonDocument& document);

// Errors stay in the document.
RankFile read_rank_file(JsonDocument& document, RankId rank, const Program& program,
                        const RankGrid& grid);

}  // namespace stepcast
