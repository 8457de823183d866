// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text_file.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "logs/log_figures.h"
#include "predict/prediction.h"
#include "report/log_report.h"
#include "validate/run_verdicts.h"

namespace stepcast::cli {
namespace {

struct StatedKey {
  LogQuantity quantity;
  const char* key;
  std::int64_t (*of)(const Scenario& scenario);
};
// Whatever differs here is another run than the scenario says.
constexpr StatedKey kStated[] = {
    {LogQuantity::kGlobalBatch, "training.global_batch",
     [](const Scenario& s) { return s.training.global_batch; }},
    {LogQuantity::kSequence, "training.sequence_length",
     [](const Scenario& s) { return s.training.sequence_length; }},
    {LogQuantity::kMicroBatch, "layout.micro_batch",
     [](const Scenario& s) { return s.layout.micro_batch; }},
    {LogQuantity::kTp, "layout.tp", [](const Scenario& s) { return std::int64_t{s.layout.tp}; }},
    {LogQuantity::kPp, "layout.pp", [](const Scenario& s) { return std::int64_t{s.layout.pp}; }},
    {LogQuantity::kCp, "layout.cp", [](const Scenario& s) { return std::int64_t{s.layout.cp}; }},
    {LogQuantity::kGpus, "cluster.gpus",
     [](const Scenario& s) { return std::int64_t{s.cluster.gpus()}; }}};

std::vector<LogDifference> differences(const TrainingLog& log, const LogFigures& figures,
                                       const Scenario& scenario) {
  std::vector<LogDifference> out;
  for (const StatedKey& one : kStated) {
    std::int64_t said = 0;
    if (const auto at = log.settings.find(one.quantity); at != log.settings.end()) {
      said = std::llround(at->second);
    }
    if (one.quantity == LogQuantity::kGlobalBatch && figures.batch > 0) said = figures.batch;
    if (said > 0 && said != one.of(scenario)) out.push_back({one.key, one.of(scenario), said});
  }
  return out;
}

RunSize size_of(const RunWork& work) {
  return {static_cast<double>(work.global_batch), static_cast<double>(work.sequence_length),
          static_cast<double>(work.gpus)};
}

StepRun run_of_log(const TrainingLog& log, const LogFigures& figures, RunWork work) {
  if (const auto length = log.settings.find(LogQuantity::kSequence); length != log.settings.end()) {
    work.sequence_length = std::llround(length->second);
  }
  if (const auto batch = log.settings.find(LogQuantity::kGlobalBatch);
      batch != log.settings.end()) {
    work.global_batch = std::llround(batch->second);
  }
  if (figures.batch > 0) work.global_batch = figures.batch;
  CaseFigures measured;
  measured.step_time_spread = std::abs(figures.high - figures.low) / 2 / figures.median;
  measured.steps = static_cast<double>(figures.lines);
  return {step_seconds(figures.unit, figures.median, size_of(work)), error_of_median(measured),
          work, log.most_allocated_bytes};
}

// The case that is called like the log, or the only one.
Result<StepRun> run_of_suite(const std::string& file, const std::string& log,
                             const DataFolders& folders) {
  const auto suite = load_suite(file);
  if (!suite) return failure(suite.error());
  const std::string id = std::filesystem::path(log).stem().string();
  auto found = std::ranges::find(suite->cases, id, &SuiteCase::id);
  if (found == suite->cases.end() && suite->cases.size() == 1) found = suite->cases.begin();
  if (found == suite->cases.end()) {
    return failure({ErrorCode::kNotFound, fmt::format("has no case '{}'", id), file, "--before",
                    "a log called like its case"});
  }
  std::optional<RunWork> work;
  const auto document = JsonDocument::from(found->scenario, file);
  if (const auto scenario = read_legal_scenario(*document, folders)) work = work_of(*scenario);
  if (const auto run = step_run_of(found->measured, work)) return *run;
  return failure({ErrorCode::kMissingKey, fmt::format("case '{}' tells no step time", found->id),
                  file, "--before", "a training log"});
}

Result<StepRun> run_before(const LogFiles& files, const RunWork& work, const DataFolders& folders) {
  const auto text = read_text_file(files.before);
  if (!text) return failure(text.error());
  if (text->find("\"stepcast_suite\"") != std::string::npos) {
    return run_of_suite(files.before, files.log, folders);
  }
  const auto log = training_log_of(*text, files.before);
  if (!log) return failure(log.error());
  const auto figures = figures_of(*log);
  if (!figures) return failure(figures.error());
  return run_of_log(*log, *figures, work);
}

}  // namespace

int diagnose_log(const LogFiles& files, const Scenario& scenario, const DataFolders& folders,
                 const OutputOptions& options, Output& output) {
  const auto read = read_training_log(files.log);
  if (!read) return report_errors(read.error());
  const auto figures = figures_of(*read);
  if (!figures) return report_errors(figures.error());
  const RunWork work = work_of(scenario);
  std::optional<RunVerdict> against;
  if (!files.before.empty()) {
    const auto before = run_before(files, work, folders);
    if (!before) return report_errors(before.error());
    compare_runs(run_of_log(*read, *figures, work), *before, kUsualSlower, against.emplace());
  }
  const auto prediction = predict(scenario, folders);
  if (!prediction) return report_errors(prediction.error());
  const LogReport report{scenario,
                         *prediction,
                         Seconds(step_seconds(figures->unit, figures->median, size_of(work))),
                         figures->steps,
                         differences(*read, *figures, scenario),
                         std::move(against)};
  if (options.format == "json") {
    output.set_main(options, log_report_json(report));
  } else {
    output.set_main(options, log_report_table(report, options.format == "md" ? Form::kMarkdown
                                                                             : text_form(options)));
  }
  if (!files.markdown.empty()) {
    output.set_file(files.markdown, log_report_table(report, Form::kMarkdown));
  }
  return output.commit();
}

}  // namespace stepcast::cli
