// SPDX-License-Identifier: Apache-2.0
#include "cli/import_draft.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "cluster/cluster.h"
#include "cluster/named_cluster.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "model/import_model.h"
#include "model/model.h"
#include "recipes/import.h"

namespace stepcast::cli {
namespace {

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

// A flag for a folder of logs is for those that print no batch.
Errors hold_printed_batch(const ImportSource& source, const DataFolders& folders, Draft& draft) {
  if (source.printed_batch == 0 || !draft.document.contains("training")) return {};
  const SortedJson& training = draft.document["training"];
  if (!training.is_object() || !training.contains("global_batch")) return {};
  if (training["global_batch"] == source.printed_batch) return {};
  draft.imported.warnings.push_back(
      fmt::format("training.global_batch is {} by flag and {} in the log, which holds",
                  json_text(training["global_batch"]), source.printed_batch));
  return set_key(fmt::format("training.global_batch={}", source.printed_batch), folders,
                 draft.document);
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

ImportedScenario import_source(const ImportSource& source) {
  ImportedScenario out;
  if (source.format.empty()) {
    out.file = source.input.file;
    out.gpus = source.input.gpus;
  } else {
    out = import_text(source.format, source.input);
  }
  if (source.complete) source.complete(out);
  return out;
}

// Errors, or notes on what is legal and not supported yet.
Result<std::vector<std::string>> check_draft(const ScenarioFlags& flags, const ImportSource& source,
                                             const Draft& draft, const DataFolders& folders,
                                             const OutputOptions& output) {
  std::vector<std::string> notes;
  const auto held = JsonDocument::from(draft.document, "");
  const auto scenario = read_scenario(*held, folders);
  if (!scenario) {
    const Errors& found = scenario.error();
    const bool legal = std::all_of(found.begin(), found.end(), [](const Error& error) {
      return error.code == ErrorCode::kNotSupported;
    });
    Errors named = name_origins(name_flags(found, flags), draft.imported);
    if (!legal) return failure(std::move(named));
    for (const Error& error : named) notes.push_back("note: " + to_string(error));
  }
  const auto again = JsonDocument::from(draft.document, "");
  const auto legal = read_legal_scenario(*again, folders);
  if (!legal) return notes;
  note_readings(output, {&*legal});
  Errors errors = source.has_run ? Errors{} : check_rules(source.format, *legal);
  if (errors.empty()) errors = other_world(draft.imported, *legal);
  if (!errors.empty()) return failure(name_origins(std::move(errors), draft.imported));
  return notes;
}

}  // namespace

Result<Draft> read_draft(const ScenarioFlags& flags, ImportSource source,
                         const DataFolders& folders, const OutputOptions& output) {
  Draft draft;
  // GPUs and layers decide other keys, so the file is read again once they are known.
  for (int reading = 0; reading < 2; ++reading) {
    draft.imported = import_source(source);
    Errors wrong;
    draft.document = scenario_document(draft.imported, &wrong);
    append(draft.imported.errors, wrong);
    const Errors errors = apply_flags(flags, folders, draft.document);
    if (!errors.empty()) return failure(errors);
    append(draft.imported.errors, hold_printed_batch(source, folders, draft));
    size_cluster(draft.document, draft.imported, folders);
    if (reading == 0) add_facts(draft.document, folders, source.input);
  }
  if (!draft.imported.errors.empty()) return failure(draft.imported.errors);
  if (!draft.document.contains("cluster")) return failure(without_cluster());
  auto notes = check_draft(flags, source, draft, folders, output);
  if (!notes) return failure(notes.error());
  draft.notes = std::move(*notes);
  return draft;
}

void print_notes(const Draft& draft, const OutputOptions& output) {
  for (const std::string& warning : draft.imported.warnings) note(output, "warning: " + warning);
  if (!draft.imported.without_effect.empty()) {
    note(output, fmt::format("note: without effect on cost, left out: {}",
                             fmt::join(draft.imported.without_effect, ", ")));
  }
  for (const std::string& line : draft.notes) note(output, line);
}

}  // namespace stepcast::cli
