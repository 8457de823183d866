// SPDX-License-Identifier: Apache-2.0
// The recorded run that `validate` compares with: its flags and its file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/validated_run.h"
#include "validate/validation_baseline.h"

namespace stepcast {
struct Scenario;
}  // namespace stepcast

namespace stepcast::cli {

struct BaselineFlags {
  std::string file;
  bool update = false;
  std::vector<std::string> drifts;  // "measured:step_time=0.1"
};

void add_baseline_flags(CommandLine app, BaselineFlags& flags);
void plan_baseline(const BaselineFlags& flags, Output& output);

RunFacts facts_of(const ValidatedRun& run);

// Holds what is recorded, if anything, and how far a run may be from it.
class RecordedRun {
 public:
  // Reads the file that the flags name. One that is to be updated need not be there.
  static Result<RecordedRun> read(const BaselineFlags& flags);

  // Before the run: checks that it is the recorded one. An update may record another.
  Errors check(const Scenario& scenario, const ValidatedRun& run,
               const OutputOptions& output) const;
  // Sets the drift, and the new content of the file when it is to be updated; a run that did not
  // pass is not recorded.
  void judge(const Scenario& scenario, const ValidatedRun& run, Validation& validation,
             Output& output) const;
  // Tells the user about the baseline once everything is written.
  void tell(const Validation& validation, const OutputOptions& output) const;

 private:
  BaselineFlags flags_;
  std::optional<ValidationBaseline> baseline_;
  std::vector<Tolerance> limits_;
};

}  // namespace stepcast::cli
