// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_baseline.h"

#include <fmt/format.h>

#include "cli/baseline_file.h"
#include "core/gathered_errors.h"
#include "layout/scenario.h"

namespace stepcast::cli {

void add_baseline_flags(CommandLine app, BaselineFlags& flags) {
  app.add("--baseline", flags.file,
          "compare with the run that this file records; beyond --drift the exit code is 4")
      .type_name("FILE");
  app.add_switch("--update", flags.update, "record this run in the baseline, if it passes");
  app.add("--drift", flags.drifts,
          "allowed distance from the baseline: step_time (0.10), peak_memory (0.01), "
          "device_memory (0.05) or bubble_fraction (0.05); for one side measured:step_time=0.2")
      .type_name("[SIDE:]FIGURE=LIMIT")
      .one_word();
}

void plan_baseline(const BaselineFlags& flags, Output& output) {
  if (flags.update) {
    output.plan("--baseline", flags.file);
  } else {
    output.protect("--baseline", flags.file);
  }
}

RunFacts facts_of(const ValidatedRun& run) { return {run.on_gpu() ? "cuda" : "cpu", run.alone}; }

Result<RecordedRun> RecordedRun::read(const BaselineFlags& flags) {
  RecordedRun out;
  out.flags_ = flags;
  Errors errors;
  for (const std::string& text : flags.drifts) {
    if (auto limit = parse_drift_limit(text)) {
      out.limits_.push_back(std::move(*limit));
    } else {
      append(errors, limit.error());
    }
  }
  if (flags.file.empty()) {
    if (flags.update || !flags.drifts.empty()) {
      errors.push_back({ErrorCode::kMissingKey, "needs a baseline", "",
                        flags.update ? "--update" : "--drift", "give --baseline FILE"});
    }
    if (!errors.empty()) return failure(std::move(errors));
    return out;
  }
  const auto text = read_baseline_file(flags.file, flags.update);
  if (!text) {
    append(errors, text.error());
  } else if (*text) {
    if (auto baseline = read_validation_baseline(**text, flags.file)) {
      out.baseline_ = std::move(*baseline);
    } else {
      append(errors, baseline.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Errors RecordedRun::check(const Scenario& scenario, const ValidatedRun& run,
                          const OutputOptions& output) const {
  if (!baseline_) return {};
  Errors other = other_run(*baseline_, scenario, facts_of(run), flags_.file);
  if (!flags_.update || other.empty()) return other;
  note(output, fmt::format("note: {} recorded another run, which --update replaces: {} {}",
                           flags_.file, other.front().path, other.front().message));
  return {};
}

void RecordedRun::judge(const Scenario& scenario, const ValidatedRun& run, Validation& validation,
                        Output& output) const {
  if (flags_.file.empty()) return;
  BaselineDrift drift;
  if (!baseline_) {
    drift.skipped = "nothing was recorded yet";
  } else if (!other_run(*baseline_, scenario, facts_of(run), flags_.file).empty()) {
    drift.skipped = "it recorded another run";
  } else {
    drift.skipped = other_machine(*baseline_, scenario.cluster.spec.accelerator);
    if (drift.skipped.empty()) drift = drift_from(*baseline_, validation, limits_);
  }
  drift.file = flags_.file;
  drift.updated = flags_.update && validation.within_limits();
  if (drift.updated) {
    output.set_file(flags_.file, validation_baseline_text(scenario, facts_of(run), validation));
  }
  validation.drift = std::move(drift);
}

void RecordedRun::tell(const Validation& validation, const OutputOptions& output) const {
  if (!validation.drift) return;
  if (!validation.drift->skipped.empty()) {
    note(output,
         fmt::format("note: not compared with {}: {}", flags_.file, validation.drift->skipped));
  }
  if (flags_.update) {
    note(output,
         validation.drift->updated ? "wrote " + flags_.file : flags_.file + " is left as it was");
  }
  if (validation.inconclusive()) {
    note(output, fmt::format("note: {} is neither kept nor broken: the machine was busy, measure "
                             "again when it is quiet",
                             flags_.file));
  }
  if (!validation.regressed()) return;
  for (const Finding& finding : validation.drift->broken) {
    note(output, fmt::format("broken: {}: {}", finding.title, finding.message));
  }
}

}  // namespace stepcast::cli
