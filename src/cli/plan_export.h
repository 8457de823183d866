// SPDX-License-Identifier: Apache-2.0
// Whether the places of a plan have launch files.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/result.h"

namespace stepcast {

class Planner;
struct DataFolders;
struct SearchResult;
}  // namespace stepcast

namespace stepcast::cli {

// Puts the first layout that its framework's launch files can say at the front of a near tie whose
// first one they cannot say. `stated` is the scenario without the layout. Returns a sentence where
// the first place still has no launch files, else nothing. Errors: a file that the machine does not
// let be read.
Result<std::string> prefer_exportable(const Planner& planner, const SortedJson& stated,
                                      const DataFolders& folders, SearchResult& result);

}  // namespace stepcast::cli
