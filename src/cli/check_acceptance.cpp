// SPDX-License-Identifier: Apache-2.0
#include "cli/check_acceptance.h"

#include <filesystem>
#include <optional>

#include "acceptance/judge_results.h"
#include "acceptance/threshold_file.h"
#include "cli/import_log.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "report/acceptance_report.h"

namespace stepcast::cli {
namespace {

// The cluster that the thresholds are of: results are of its devices.
Result<Scenario> scenario_of(const Thresholds& thresholds, const std::string& file,
                             const DataFolders& folders) {
  const auto document = JsonDocument::parse(json_text(thresholds.scenario), file);
  if (!document) return failure(document.error());
  return read_scenario(**document, folders);
}

Errors add_results(const std::string& file, const Thresholds& thresholds,
                   const ClusterSpec& cluster, Results& out) {
  auto log = find_log(file);
  if (!log) return log.error();
  if (!*log) {
    auto imported = import_files({file}, cluster);
    if (!imported) return imported.error();
    for (ImportedCollective& one : imported->collectives) {
      out.imported.collectives.push_back(std::move(one));
    }
    return {};
  }
  const auto figures = figures_of(**log);
  if (!figures) return figures.error();
  const RunSize size{static_cast<double>(thresholds.global_batch),
                     static_cast<double>(thresholds.sequence),
                     static_cast<double>(thresholds.gpus)};
  out.step_s = step_seconds(figures->unit, figures->median, size);
  return {};
}

Written render(const std::string& format, const OutputOptions& output,
               const std::vector<Judged>& judged) {
  if (format == "json") return acceptance_json(judged);
  if (format == "csv") return acceptance_csv(judged);
  if (format == "junit") return acceptance_junit(judged);
  if (format == "github") return acceptance_github(judged);
  return acceptance_table(judged, format == "md" ? Form::kMarkdown : text_form(output));
}

}  // namespace

bool is_acceptance(const std::vector<std::string>& suites) {
  std::error_code none;
  if (suites.size() != 1 || !std::filesystem::is_regular_file(suites.front(), none)) return false;
  const auto text = read_text_file(suites.front());
  return text && is_threshold_file(*text);
}

int check_acceptance(const AcceptanceFlags& flags, const DataFolders& folders, Output& output) {
  const auto text = read_text_file(flags.file);
  if (!text) return report_errors(text.error());
  const auto thresholds = read_threshold_file(*text, flags.file);
  if (!thresholds) return report_errors(thresholds.error());
  if (flags.results.empty()) {
    return report_errors({{ErrorCode::kMissingKey, "names no results to judge", "", "--results",
                           "what nccl-tests printed, and the training log"}});
  }
  const auto scenario = scenario_of(*thresholds, flags.file, folders);
  if (!scenario) return report_errors(scenario.error());
  Results results;
  Errors errors;
  for (const std::string& file : flags.results) {
    append(errors, add_results(file, *thresholds, scenario->cluster.spec, results));
  }
  if (!errors.empty()) return report_errors(errors);
  const std::vector<Judged> judged = judge_results(*thresholds, results);
  output.set_main(flags.output, render(flags.output.format, flags.output, judged));
  if (!flags.markdown.empty()) {
    output.set_file(flags.markdown, acceptance_table(judged, Form::kMarkdown));
  }
  if (const int code = output.commit(); code != kOk) return code;
  const bool kept =
      std::all_of(judged.begin(), judged.end(), [](const Judged& one) { return one.kept(); });
  return kept ? kOk : kRegression;
}

}  // namespace stepcast::cli
