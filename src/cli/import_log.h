// SPDX-License-Identifier: Apache-2.0
// Training logs as scenarios: the settings that a log prints or that stand beside it, the flags
// laid over them, and the figures of its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/import_draft.h"
#include "cli/scenario_flags.h"
#include "logs/log_figures.h"
#include "logs/training_log.h"

namespace stepcast::cli {

struct LogImport {
  ScenarioFlags scenario;  // laid over what log and settings say
  std::string config;      // settings of a log that prints none
  std::int64_t warm_up = kUsualWarmUp;
  std::string acceptance;  // the file of thresholds that the case of a suite has to keep
};

void add_log_flags(CommandLine app, LogImport& flags);

// The log of a file, a pipe included; nothing when it neither tells steps nor prints settings as
// logs do.
Result<std::optional<TrainingLog>> find_log(const std::string& file);

// A log's scenario, and its figures where it has steps enough.
struct ImportedLog {
  TrainingLog log;
  Draft draft;
  std::optional<LogFigures> figures;
};
Result<ImportedLog> import_log(const LogImport& flags, TrainingLog log, const DataFolders& folders,
                               const OutputOptions& output);

}  // namespace stepcast::cli
