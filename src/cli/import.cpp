// SPDX-License-Identifier: Apache-2.0
#include "recipes/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/import_draft.h"
#include "cli/import_log.h"
#include "cli/output.h"
#include "cli/suite_of_logs.h"
#include "core/atomic_file.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "recipes/yaml_json.h"

namespace stepcast::cli {
namespace {

constexpr const char* kLog = "log";  // of --from

struct ImportFlags {
  LogImport log;  // its scenario is laid over what any file says
  OutputOptions output;
  std::string data;
  std::vector<std::string> files;
  std::string suite, case_id;
  std::string from;
  std::vector<std::string> variables;
};

Result<std::map<std::string, std::string>> read_variables(const ImportFlags& flags) {
  std::map<std::string, std::string> out;
  for (const std::string& text : flags.variables) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return failure({ErrorCode::kBadValue, fmt::format("'{}' has no value", text), "",
                      "--variable", "NAME=VALUE"});
    }
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

// A value for a name that the script does not have would be ignored silently.
Errors unused_variables(const ImportInput& input, const std::string& format) {
  Errors errors;
  if (!is_script(format)) {
    if (input.variables.empty()) return {};
    return {{ErrorCode::kIllegal,
             fmt::format("'{}' is for shell scripts, and {} is none",
                         input.variables.begin()->first, input.file),
             "", "--variable", "a key of the scenario: --set PATH=VALUE"}};
  }
  std::vector<std::string> names;
  std::string word;
  for (const char c : input.text + "\n") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else if (!word.empty()) {
      names.push_back(std::move(word));
      word.clear();
    }
  }
  for (const auto& [name, value] : input.variables) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    errors.push_back({ErrorCode::kNotFound,
                      fmt::format("{} has no variable '{}'", input.file, name), "", "--variable",
                      did_you_mean(name, names)});
  }
  return errors;
}

int write_draft(const ImportFlags& flags, const Draft& draft, Output& output) {
  output.set_as_it_is(flags.output.file, json_file(draft.document, 2));
  if (const int code = output.commit(); code != kOk) return code;
  print_notes(draft, flags.output);
  return kOk;
}

// Accelerate's file beside the settings of a script around Hugging Face's Trainer, whichever of the
// two stands first.
Errors add_accelerate(const ImportFlags& flags, ImportSource& source) {
  const auto text = read_text_file(flags.files[1], {.most_bytes = kMostScriptBytes});
  if (!text) return text.error();
  std::string other = text_to_import(*text), file = flags.files[1];
  if (flags.from.empty() && is_accelerate(source.input.text)) {
    std::swap(other, source.input.text);
    std::swap(file, source.input.file);
    source.format = detect_format(source.input.text);
  }
  if (may_have_accelerate(source.format) && is_accelerate(other)) {
    source.input.accelerate = {other, file};
    return {};
  }
  return {{ErrorCode::kIllegal,
           fmt::format("{} and {} are not the two files of one run", source.input.file, file), "",
           "FILE", "settings of TRL and Accelerate's file; several logs make a suite: --suite"}};
}

// A file that calls itself YAML and is none has that mistake, whatever program it is for.
Errors mistakes_of_yaml(const std::string& file, const std::string& text) {
  if (!file.ends_with(".yaml") && !file.ends_with(".yml")) return {};
  const auto read = yaml_to_json(text, file);
  return read ? Errors{} : read.error();
}

int import_settings(const ImportFlags& flags, const DataRoot& data, Output& output) {
  const std::string& file = flags.files.front();
  const auto text = read_text_file(file, {.most_bytes = kMostScriptBytes});
  if (!text) return report_errors(text.error());
  const auto variables = read_variables(flags);
  if (!variables) return report_errors(variables.error());
  ImportSource source;
  source.input.text = text_to_import(*text);
  source.input.file = file;
  source.input.variables = *variables;
  source.input.models_folder = data.folders.models;
  source.format = flags.from.empty() ? detect_format(source.input.text) : flags.from;
  if (flags.from.empty() && source.input.text == *text) {
    if (const Errors mistakes = mistakes_of_yaml(file, *text); !mistakes.empty()) {
      return report_errors(mistakes);
    }
  }
  if (flags.files.size() > 1) {
    if (const Errors errors = add_accelerate(flags, source); !errors.empty()) {
      return report_errors(errors);
    }
  }
  if (const Errors unused = unused_variables(source.input, source.format); !unused.empty()) {
    return report_errors(unused);
  }
  const auto draft = read_draft(flags.log.scenario, std::move(source), data.folders, flags.output);
  if (!draft) return report_errors(draft.error());
  return write_draft(flags, *draft, output);
}

int import_one_log(const ImportFlags& flags, TrainingLog log, const DataRoot& data,
                   Output& output) {
  const auto imported = import_log(flags.log, std::move(log), data.folders, flags.output);
  if (!imported) return report_errors(imported.error());
  const int code = write_draft(flags, imported->draft, output);
  if (code == kOk && imported->figures) note(flags.output, words_on(*imported));
  return code;
}

int import_suite(const ImportFlags& flags, const DataRoot& data, Output& output) {
  auto suite =
      suite_of_logs(flags.log, flags.files, flags.suite, flags.case_id, data.folders, flags.output);
  if (!suite) return report_errors(suite.error());
  output.set_file(flags.suite, std::move(*suite));
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.suite);
  return kOk;
}

Errors contradictions(const ImportFlags& flags) {
  std::error_code none;
  if (flags.suite.empty()) {
    if (!flags.case_id.empty()) {
      return {{ErrorCode::kMissingKey, "is of a suite", "", "--case", "--suite FILE"}};
    }
    if (!flags.log.acceptance.empty()) {
      return {{ErrorCode::kMissingKey, "is of a suite", "", "--acceptance", "--suite FILE"}};
    }
    const bool is_folder = std::filesystem::is_directory(flags.files.front(), none);
    if (flags.files.size() == 1 && !is_folder) return {};
    const bool are_files = flags.files.size() == 2 && !is_folder &&
                           !std::filesystem::is_directory(flags.files.back(), none);
    if (are_files) return {};  // import_settings() and import_one_log() judge them
    return {{ErrorCode::kMissingKey, "several logs make a suite", "", "--suite", "--suite FILE"}};
  }
  if (flags.from.empty() || flags.from == kLog) return {};
  return {{ErrorCode::kIllegal, fmt::format("--suite takes logs, and --from says {}", flags.from),
           "", "--from", "leave one of them out"}};
}

int run_import(const ImportFlags& flags) {
  if (const Errors errors = contradictions(flags); !errors.empty()) return report_errors(errors);
  Output output;
  output.plan("-o", flags.output.file);
  output.plan("--suite", flags.suite);
  for (const std::string& file : flags.files) output.protect("FILE", file);
  output.protect("--config", flags.log.config);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  if (!flags.suite.empty()) return import_suite(flags, *data, output);
  if (!flags.from.empty() && flags.from != kLog) return import_settings(flags, *data, output);
  const std::string& file = flags.files.front();
  // A pipe can be read once, so --from tells what comes out of it.
  if (flags.from.empty() && is_special_file(file)) return import_settings(flags, *data, output);
  auto log = find_log(file);
  if (!log) return report_errors(log.error());
  if (*log && flags.files.size() > 1) {
    return report_errors(
        {{ErrorCode::kMissingKey, "several logs make a suite", "", "--suite", "--suite FILE"}});
  }
  if (*log) return import_one_log(flags, std::move(**log), *data, output);
  if (flags.from == kLog) return report_errors({no_steps(nullptr, file)});
  return import_settings(flags, *data, output);
}

}  // namespace

Command add_import(CommandLine program) {
  auto flags = std::make_shared<ImportFlags>();
  CommandLine app =
      program.add_command("import", "make a scenario of another tool's settings or log");
  app.footer(
      "Examples:\n"
      "  stepcast import pretrain_gpt.sh --cluster dgx-a100-80g -o scenario.json\n"
      "  stepcast import ds_config.json --model config.json --seq 4096 --cluster dgx-h100x4\n"
      "  stepcast import sft.yaml accelerate.yaml --cluster dgx-h100x1 -o scenario.json\n"
      "  stepcast import run.log --cluster dgx-h100 -o scenario.json\n"
      "  stepcast import logs/ --cluster dgx-h100 --suite runs.json\n"
      "Flags override what the file says. Settings that a scenario has no key for are listed on\n"
      "standard error.");
  app.add("FILE", flags->files,
          "a shell script or YAML with Megatron's flags, Megatron-Bridge's YAML, DeepSpeed's JSON, "
          "torchtitan's "
          "TOML or JSON, YAML of NeMo AutoModel, Primus, Accelerate, TRL, Axolotl, torchtune or "
          "llm-foundry, a "
          "Hugging Face config.json, a Kubernetes manifest with one, ASTRA-sim's network, or a "
          "training log; with "
          "--suite several logs, and folders of them; TRL's settings or script, and Accelerate's "
          "file behind them")
      .required();
  auto names = import_format_names();
  names.emplace_back(kLog);
  app.add("--from", flags->from, one_of(names) + "; otherwise recognised from the file")
      .one_of(names)
      .type_name("FORMAT");
  app.add("--variable", flags->variables, "a variable of a shell script, set before it starts")
      .type_name("NAME=VALUE")
      .one_word();
  app.add("--suite", flags->suite, "make a suite of logs with what they measured, or extend it")
      .type_name("FILE");
  app.add("--acceptance", flags->log.acceptance,
          "with --suite, the thresholds that its steps are to keep from now on (export --to "
          "acceptance)")
      .type_name("FILE");
  app.add("--case", flags->case_id,
          "the case of the suite that one log is a run of; otherwise the log's name")
      .type_name("ID");
  add_log_flags(app, flags->log);
  app.add("-o,--output", flags->output.file, "write to FILE instead of standard output")
      .type_name("FILE");
  app.add_switch("--quiet", flags->output.quiet, "print no notes on standard error");
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_import(*flags); }};
}

}  // namespace stepcast::cli
