// SPDX-License-Identifier: Apache-2.0
// Writes the profile of a GPU, whoever measured it.
#pragma once

#include "calibrate/import/imported.h"
#include "cli/session.h"

namespace stepcast {
struct DataFolders;
}  // namespace stepcast

namespace stepcast::cli {

// Writes a profile over the one that the device ships with to output.file; tells of every fit on
// standard error. Returns the exit code.
int write_gpu_profile(const Imported& measured, const ClusterSpec& cluster,
                      const DataFolders& folders, const OutputOptions& output);

}  // namespace stepcast::cli
