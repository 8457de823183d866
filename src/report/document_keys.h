// SPDX-License-Identifier: Apache-2.0
// The keys of the files that the program reads and writes beside scenarios.
#pragma once

#include <vector>

#include "core/declared_keys.h"

namespace stepcast {

// Lists those of fabrics, suites, prices, files of ranks and baselines of `validate`. Paths begin
// with the document: "suite.cases.id".
std::vector<DeclaredKey> document_keys();

}  // namespace stepcast
