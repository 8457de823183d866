// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/suite_of_logs.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "report/check_report.h"
#include "validate/documents.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

// Below the root of the data, so that every installation has it.
constexpr const char* kWorkflow = "/examples/github-actions/stepcast-gate.yml";

struct GateFlags {
  std::string suite;
  std::vector<std::string> logs;
  LogImport log;
  std::string baseline;
  std::string workflow = ".github/workflows/stepcast-gate.yml";
  std::string repository, revision;
  bool update = false;
  int threads = 0;
  OutputOptions output;
  std::string data;
};

// The workflow runs at the root of the repository, where the gate is made.
Errors outside_repository(const GateFlags& flags) {
  Errors out;
  for (const auto& [flag, path] :
       {std::pair("SUITE", &flags.suite), std::pair("--baseline", &flags.baseline)}) {
    const fs::path normal = fs::path(*path).lexically_normal();
    if (normal.is_relative() && *normal.begin() != "..") continue;
    out.push_back({ErrorCode::kIllegal, fmt::format("'{}' lies outside of this folder", *path), "",
                   flag, "a path from the root of the repository, where the workflow runs"});
  }
  return out;
}

Errors there_already(const GateFlags& flags) {
  Errors out;
  for (const auto& [flag, path] :
       {std::pair("--baseline", &flags.baseline), std::pair("--workflow", &flags.workflow)}) {
    std::error_code none;
    if (flags.update || !fs::exists(*path, none)) continue;
    out.push_back({ErrorCode::kIllegal, fmt::format("{} is there already", *path), "", flag,
                   "another file, or --update to write both anew"});
  }
  return out;
}

// The shipped workflow with the values of this gate at its top.
Result<Written> workflow_text(const GateFlags& flags, const std::string& root) {
  const auto text = read_text_file(root + kWorkflow);
  if (!text) return failure(text.error());
  std::string out;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    for (const auto& [name, value] :
         {std::pair("  SUITE: ", &flags.suite), std::pair("  BASELINE: ", &flags.baseline),
          std::pair("  STEPCAST_REPOSITORY: ", &flags.repository),
          std::pair("  STEPCAST_REVISION: ", &flags.revision)}) {
      if (!line.starts_with(name) || value->empty()) continue;
      line = name + (is_plain_yaml(*value) ? *value : json_literal(*value));
    }
    out += line + "\n";
  }
  return Written::escaped(std::move(out));
}

Result<Suite> suite_in(const std::string& text, const std::string& file) {
  const auto document = JsonDocument::parse(text, file);
  if (!document) return failure(document.error());
  return read_suite(**document);
}

Errors without_cases(const GateFlags& flags, const Suite& suite) {
  if (!suite.cases.empty()) return {};
  return {{ErrorCode::kNotFound, "has no case, and a gate without one is always open", flags.suite,
           "cases", "--logs PATH makes cases of training logs"}};
}

// Every file of the gate, or none.
int write_gate(const GateFlags& flags, Output& output) {
  for (const std::string& file : {flags.suite, flags.baseline, flags.workflow}) {
    std::error_code failed;
    const fs::path folder = fs::path(file).parent_path();
    if (!folder.empty()) fs::create_directories(folder, failed);
    if (failed) {
      return report_errors({{ErrorCode::kIo, fmt::format("cannot be made: {}", failed.message()),
                             folder.string(), "", "another folder"}});
    }
  }
  return output.commit();
}

int run_init(GateFlags& flags) {
  if (flags.baseline.empty()) {
    flags.baseline = (fs::path(flags.suite).parent_path() / "baseline.json").string();
  }
  Errors errors = outside_repository(flags);
  append(errors, there_already(flags));
  if (!errors.empty()) return report_errors(errors);
  Output output;
  const auto may_be_made = [](const std::string& file) {
    std::error_code none;
    const fs::path folder = fs::path(file).parent_path();
    return !folder.empty() && !fs::exists(folder, none);
  };
  if (!flags.logs.empty() && !may_be_made(flags.suite)) output.plan("SUITE", flags.suite);
  for (const std::string& log : flags.logs) output.protect("--logs", log);
  if (flags.logs.empty()) output.protect("SUITE", flags.suite);
  for (const auto& [flag, file] :
       {std::pair("--baseline", flags.baseline), std::pair("--workflow", flags.workflow)}) {
    if (!may_be_made(file)) output.plan(flag, file);
  }
  if (errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  auto workflow = workflow_text(flags, data->root);
  if (!workflow) return report_errors(workflow.error());

  Result<Suite> suite = failure(Errors{});
  if (flags.logs.empty()) {
    suite = load_suite(flags.suite);
  } else {
    auto text = suite_of_logs(flags.log, flags.logs, flags.suite, "", data->folders, flags.output);
    if (!text) return report_errors(text.error());
    suite = suite_in(*text, flags.suite);
    output.set_file(flags.suite, std::move(*text));
  }
  if (!suite) return report_errors(suite.error());
  if (errors = without_cases(flags, *suite); !errors.empty()) return report_errors(errors);
  CheckOptions options;
  options.threads = threads_of(flags.threads);
  const CheckReport report = check({*suite}, data->folders, options);
  if (!report.refused.empty()) return report_errors(report.refused);
  output.set_file(flags.baseline, baseline_text(report));
  output.set_file(flags.workflow, std::move(*workflow));
  output.set_main(flags.output, check_table(report, {}, {}));
  if (const int code = write_gate(flags, output); code != kOk) return code;
  if (!flags.logs.empty()) note_written(flags.output, flags.suite);
  note_written(flags.output, flags.baseline);
  note_written(flags.output, flags.workflow);
  if (flags.repository.empty()) {
    note(flags.output, fmt::format("note: say in {} where you have stepcast from: "
                                   "STEPCAST_REPOSITORY, or --repository URL",
                                   flags.workflow));
  }
  return kOk;
}

}  // namespace

Command add_gate(CommandLine program) {
  CommandLine gate = program.add_command("gate", "a gate for CI, made of recorded runs");
  gate.footer("Example: stepcast gate init runs.json");
  CommandLine app =
      gate.add_command("init", "write a suite's baseline and a workflow that checks it");
  auto flags = std::make_shared<GateFlags>();
  app.footer(
      "Examples:\n"
      "  stepcast gate init runs.json\n"
      "  stepcast gate init ci/runs.json --logs logs/ --cluster dgx-h100\n"
      "Run it at the root of a repository and commit what it writes.");
  app.add("SUITE", flags->suite, "a suite; with --logs it is made, or extended").required();
  app.add("--logs", flags->logs, "training logs, and folders of them, for the suite")
      .type_name("PATH");
  add_log_flags(app, flags->log);
  app.add("--baseline", flags->baseline, "the baseline; otherwise baseline.json beside the suite")
      .type_name("FILE");
  app.add("--workflow", flags->workflow, "the workflow of GitHub Actions")
      .type_name("FILE")
      .shows_default();
  app.add("--repository", flags->repository, "where the workflow has stepcast from")
      .type_name("URL");
  app.add("--revision", flags->revision, "the tag or commit that it builds").type_name("REVISION");
  app.add_switch("--update", flags->update, "write a baseline and a workflow anew that are there");
  add_threads_flag(app, flags->threads);
  add_output_flags(app, flags->output, {"table"});
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_init(*flags); }});
}

}  // namespace stepcast::cli
