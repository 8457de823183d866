// SPDX-License-Identifier: Apache-2.0
#include "recipes/import.h"
#include "core/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cluster/named_cluster.h"
#include "core/gathered_errors.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "model/import_model.h"

namespace stepcast::cli {
namespace {

struct ImportFlags {
  ScenarioFlags scenario;  // laid over what the file says
  OutputOptions output;
  std::string data;
  std::string file;
  std::string from;
  std::vector<std::string> variables;
};

// GPUs of the document's cluster and layers of its model, where they can be read.
void add_facts(const SortedJson& document, const DataFolders& folders, ImportInput& input) {
  if (document.contains("cluster")) {
    const auto held = JsonDocument::from(document["cluster"], "");
    const Cluster cluster = read_cluster(held->root(), folders.topologies);
    if (held->ok()) input.gpus = cluster.gpus();
  }
  if (!document.contains("model")) return;
  if (document["model"].is_string()) {
    const auto model = find_model(document["model"].get<std::string>(), folders.models);
    if (model) input.layers = model->layers;
    return;
  }
  const auto held = JsonDocument::from(document["model"], "");
  const Model model = read_model(held->root());
  if (held->ok()) input.layers = model.layers;
}

// A cluster that is only named has the GPUs that the file starts.
void size_cluster(SortedJson& document, const ImportedScenario& imported,
                  const DataFolders& folders) {
  if (!document.contains("cluster") || !imported.gpus) return;
  SortedJson& cluster = document["cluster"];
  if (cluster.is_string()) {
    SortedJson named = named_cluster(cluster.get<std::string>(), folders.topologies);
    if (named.contains("nodes") || named.contains("gpus")) return;
    cluster = std::move(named);
  }
  if (!cluster.is_object() || !cluster.contains("base")) return;
  if (!cluster.contains("nodes") && !cluster.contains("gpus")) cluster["gpus"] = *imported.gpus;
}

// Errors about a key name the word of the file that set it. A missing vocabulary is the file's
// fault: launch scripts often leave it to the tokenizer.
Errors name_origins(Errors errors, const ImportedScenario& imported) {
  for (Error& error : errors) {
    if (error.code == ErrorCode::kMissingKey && error.path == "model.vocab") {
      error.message = "is not in the file, which leaves it to the tokenizer";
      error.file = imported.file;
      error.hint = "--set model.vocab=N; a script says it with --vocab-size";
    }
    const bool of_flag = error.path.starts_with("--");
    if (error.file.empty() && !of_flag) error.file = imported.file;
    const Setting* setting = imported.find(error.path);
    if (!setting || setting->origin.empty()) continue;
    error.path = fmt::format("{} ({})", setting->origin, error.path);
  }
  return errors;
}

Errors without_cluster() {
  return {{ErrorCode::kMissingKey, "is required: launch files name no hardware", "", "--cluster",
           "NAMExNODES, as in dgx-h100x8; see stepcast show clusters"}};
}

Errors other_world(const ImportedScenario& imported, const Scenario& scenario) {
  if (!imported.gpus || *imported.gpus == scenario.cluster.gpus()) return {};
  return {{ErrorCode::kIllegal,
           fmt::format("starts {} GPUs, and the cluster has {}", *imported.gpus,
                       scenario.cluster.gpus()),
           imported.file, "", fmt::format("--gpus {}", *imported.gpus)}};
}

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

struct Draft {
  ImportedScenario imported;
  SortedJson document;
};

Result<Draft> read_draft(const ImportFlags& flags, const std::string& format, ImportInput input,
                         const DataFolders& folders) {
  Draft draft;
  // GPUs and layers decide other keys, so the file is read again once they are known.
  for (int reading = 0; reading < 2; ++reading) {
    draft.imported = import_text(format, input);
    Errors wrong;
    draft.document = scenario_document(draft.imported, &wrong);
    append(draft.imported.errors, wrong);
    const Errors errors = apply_flags(flags.scenario, folders, draft.document);
    if (!errors.empty()) return failure(errors);
    size_cluster(draft.document, draft.imported, folders);
    if (reading == 0) add_facts(draft.document, folders, input);
  }
  if (!draft.imported.errors.empty()) return failure(draft.imported.errors);
  if (!draft.document.contains("cluster")) return failure(without_cluster());
  return draft;
}

// Errors, or notes on what is legal and not supported yet.
Result<std::vector<std::string>> check_draft(const ImportFlags& flags, const std::string& format,
                                             const Draft& draft, const DataFolders& folders) {
  std::vector<std::string> notes;
  const auto held = JsonDocument::from(draft.document, "");
  const auto scenario = read_scenario(*held, folders);
  if (!scenario) {
    const Errors& found = scenario.error();
    const bool legal = std::all_of(found.begin(), found.end(), [](const Error& error) {
      return error.code == ErrorCode::kNotSupported;
    });
    Errors named = name_origins(name_flags(found, flags.scenario), draft.imported);
    if (!legal) return failure(std::move(named));
    for (const Error& error : named) notes.push_back("note: " + to_string(error));
  }
  const auto again = JsonDocument::from(draft.document, "");
  const auto legal = read_legal_scenario(*again, folders);
  if (!legal) return notes;
  note_readings(flags.output, {&*legal});
  Errors errors = check_rules(format, *legal);
  if (errors.empty()) errors = other_world(draft.imported, *legal);
  if (!errors.empty()) return failure(name_origins(std::move(errors), draft.imported));
  return notes;
}

void print_notes(const ImportFlags& flags, const ImportedScenario& imported) {
  for (const std::string& warning : imported.warnings) {
    note(flags.output, "warning: " + warning);
  }
  if (imported.without_effect.empty()) return;
  note(flags.output, fmt::format("note: without effect on cost, left out: {}",
                                 fmt::join(imported.without_effect, ", ")));
}

int run_import(const ImportFlags& flags) {
  Output output;
  output.plan("-o", flags.output.file);
  output.protect("FILE", flags.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  const auto text = read_text_file(flags.file, {.most_bytes = kMostScriptBytes});
  if (!text) return report_errors(text.error());
  const auto variables = read_variables(flags);
  if (!variables) return report_errors(variables.error());

  ImportInput input;
  input.text = text_to_import(*text);
  input.file = flags.file;
  input.variables = *variables;
  input.models_folder = data->folders.models;
  const std::string format = flags.from.empty() ? detect_format(input.text) : flags.from;
  if (const Errors unused = unused_variables(input, format); !unused.empty()) {
    return report_errors(unused);
  }
  const auto draft = read_draft(flags, format, std::move(input), data->folders);
  if (!draft) return report_errors(draft.error());
  const auto notes = check_draft(flags, format, *draft, data->folders);
  if (!notes) return report_errors(notes.error());
  output.set_main(flags.output, json_file(draft->document, 2));
  if (const int code = output.commit(); code != kOk) return code;
  print_notes(flags, draft->imported);
  for (const std::string& line : *notes) note(flags.output, line);
  return kOk;
}

}  // namespace

Command add_import(CommandLine program) {
  auto flags = std::make_shared<ImportFlags>();
  CommandLine app =
      program.add_command("import", "make a scenario of what another tool launches with");
  app.footer(
      "Examples:\n"
      "  stepcast import pretrain_gpt.sh --cluster dgx-a100-80g -o scenario.json\n"
      "  stepcast import ds_config.json --model config.json --seq 4096 --cluster dgx-h100x4\n"
      "Flags override what the file says. Settings that a scenario has no key for are listed on\n"
      "standard error.");
  app.add("FILE", flags->file,
          "a shell script or YAML with Megatron's flags, DeepSpeed's JSON, torchtitan's "
          "TOML or JSON, a Hugging Face config.json, or a Kubernetes manifest with one")
      .required();
  const auto names = import_format_names();
  app.add("--from", flags->from, one_of(names) + "; otherwise recognised from the file")
      .one_of(names)
      .type_name("FORMAT");
  app.add("--variable", flags->variables, "a variable of a shell script, set before it starts")
      .type_name("NAME=VALUE")
      .one_word();
  add_scenario_values(app, flags->scenario);
  app.add("-o,--output", flags->output.file, "write to FILE instead of standard output")
      .type_name("FILE");
  app.add_switch("--quiet", flags->output.quiet, "print no notes on standard error");
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_import(*flags); }};
}

}  // namespace stepcast::cli
