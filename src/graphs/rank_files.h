// SPDX-License-Identifier: Apache-2.0
// Which file belongs to which rank of a set of traces: PREFIX.RANK.et, as ASTRA-sim names them.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stepcast {

// The files by rank. A word is a file, a folder with the files of one set, or the PREFIX of a set;
// one file whose name has no rank is rank 0. Errors: nothing there, a rank that is missing or
// stands twice.
Result<std::vector<std::string>> files_by_rank(const std::vector<std::string>& words);

}  // namespace stepcast
