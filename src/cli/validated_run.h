// SPDX-License-Identifier: Apache-2.0
// Holds what `validate` runs, and says whether this machine can.
#pragma once

#include <optional>

#include "cli/session.h"
#include "core/id.h"
#include "launch/scratch_folder.h"
#include "program/executable.h"

namespace stepcast {
struct DataFolders;
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

struct ValidatedRun {
  Backend backend = Backend::kCpu;
  std::optional<RankId> alone = {};           // one rank of the layout
  std::optional<NumericsLimits> limits = {};  // nothing: numerics are not compared
  bool on_gpu() const { return backend == Backend::kCuda; }
};

// Whether the backend runs such devices, such a layout, and has such a rank.
Errors check_runnable(const ValidatedRun& run, const Scenario& scenario);

// Whether this machine has the GPUs that the run needs, and whether they are the cluster's. Returns
// the exit code, reported.
int look_for_gpus(const ValidatedRun& run, const Scenario& scenario, const DataFolders& folders,
                  const ScratchFolder& scratch, const OutputOptions& output);

}  // namespace stepcast::cli
