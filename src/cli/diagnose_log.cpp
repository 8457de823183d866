// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose_log.h"

#include <cmath>

#include "core/json_tree.h"
#include "layout/scenario.h"
#include "logs/log_figures.h"
#include "predict/prediction.h"
#include "report/log_report.h"

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

}  // namespace

int diagnose_log(const std::string& log, const Scenario& scenario, const DataFolders& folders,
                 const OutputOptions& options, const std::string& markdown, Output& output) {
  const auto read = read_training_log(log);
  if (!read) return report_errors(read.error());
  const auto figures = figures_of(*read);
  if (!figures) return report_errors(figures.error());
  const auto prediction = predict(scenario, folders);
  if (!prediction) return report_errors(prediction.error());
  const RunSize size{static_cast<double>(scenario.training.global_batch),
                     static_cast<double>(scenario.training.sequence_length),
                     static_cast<double>(scenario.cluster.gpus())};
  const LogReport report{scenario, *prediction,
                         Seconds(step_seconds(figures->unit, figures->median, size)),
                         figures->steps, differences(*read, *figures, scenario)};
  if (options.format == "json") {
    output.set_main(options, log_report_json(report));
  } else {
    output.set_main(options, log_report_table(report, options.format == "md" ? Form::kMarkdown
                                                                             : text_form(options)));
  }
  if (!markdown.empty()) output.set_file(markdown, log_report_table(report, Form::kMarkdown));
  return output.commit();
}

}  // namespace stepcast::cli
