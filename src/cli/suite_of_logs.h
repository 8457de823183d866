// SPDX-License-Identifier: Apache-2.0
// Cases of a suite (docs/formats/suite.md) that are made of training logs.
#pragma once

#include <string>
#include <vector>

#include "cli/import_log.h"
#include "core/text/written.h"

namespace stepcast::cli {

// "run.log: Megatron-LM: 3.512 s a step, the median of 95 steps (quartiles 3.503 s to 3.53 s)".
std::string words_on(const ImportedLog& imported);

// Says that a file tells no steps; `log` is what was found of it, or null.
Error no_steps(const TrainingLog* log, const std::string& file);

// The text of a suite with a case for each log: the cases of `suite_file`, if it is there, and
// these in the place of those with the same id. `paths` are files, and folders whose logs are
// taken. A case is named after its log, or `case_id` where that is not empty. Tells the figures of
// each log.
Result<Written> suite_of_logs(const LogImport& flags, const std::vector<std::string>& paths,
                              const std::string& suite_file, const std::string& case_id,
                              const DataFolders& folders, const OutputOptions& output);

}  // namespace stepcast::cli
