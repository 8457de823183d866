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

struct LaunchNote {
  std::string target;   // of `export --to`, which launches the first place; empty: none does
  std::string missing;  // a sentence on why it has no launch files, though its framework has some
};

// Puts the first layout that its framework's launch files can say at the front of a near tie whose
// first one they cannot say. `stated` is the scenario without the layout. Errors: a file that the
// machine does not let be read.
Result<LaunchNote> prefer_exportable(const Planner& planner, const SortedJson& stated,
                                     const DataFolders& folders, SearchResult& result);

}  // namespace stepcast::cli
