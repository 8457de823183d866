// SPDX-License-Identifier: Apache-2.0
#include "cli/import_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/atomic_file.h"
#include "core/gathered_errors.h"
#include "core/text_file.h"
#include "logs/printed_settings.h"
#include "recipes/import.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

// Scenario keys of what logs say of a run.
struct LoggedKey {
  LogQuantity quantity;
  const char* path;
};
constexpr LoggedKey kLoggedKeys[] = {{LogQuantity::kGlobalBatch, "training.global_batch"},
                                     {LogQuantity::kMicroBatch, "layout.micro_batch"},
                                     {LogQuantity::kSequence, "training.sequence_length"},
                                     {LogQuantity::kTp, "layout.tp"},
                                     {LogQuantity::kPp, "layout.pp"},
                                     {LogQuantity::kCp, "layout.cp"},
                                     {LogQuantity::kVocab, "model.vocab"}};

std::optional<std::int64_t> said(const TrainingLog& log, LogQuantity quantity) {
  const auto found = log.settings.find(quantity);
  if (found == log.settings.end()) return std::nullopt;
  return std::llround(found->second);
}

std::optional<std::int64_t> gpus_of(const TrainingLog& log) {
  if (const auto gpus = said(log, LogQuantity::kGpus)) return gpus;
  const auto shards = said(log, LogQuantity::kShards);
  if (!shards) return std::nullopt;
  std::int64_t out = *shards;
  for (const LogQuantity degree :
       {LogQuantity::kReplicas, LogQuantity::kTp, LogQuantity::kPp, LogQuantity::kCp}) {
    out *= std::clamp<std::int64_t>(said(log, degree).value_or(1), 1, 1 << 20);
    if (out <= 0 || out > (std::int64_t{1} << 30)) return std::nullopt;
  }
  return out;
}

struct Runs {
  LogSource source;
  const char* framework;
};
constexpr Runs kRuns[] = {
    {LogSource::kMegatron, "megatron"},   {LogSource::kNemo, "megatron"},
    {LogSource::kBridge, "megatron"},     {LogSource::kTorchtitan, "fsdp"},
    {LogSource::kAutomodel, "fsdp"},      {LogSource::kComposer, "fsdp"},
    {LogSource::kDeepSpeed, "deepspeed"}, {LogSource::kOlderDeepSpeed, "deepspeed"}};

// Without a config the tool alone tells what it trains with.
void add_framework(const TrainingLog& log, ImportedScenario& out) {
  const auto runs = std::ranges::find(kRuns, log.steps.source, &Runs::source);
  if (runs == std::end(kRuns)) return;
  out.set_word("training.framework", runs->framework, tool_of(log.steps.source).name);
  const auto replicas = said(log, LogQuantity::kReplicas), shards = said(log, LogQuantity::kShards);
  if (replicas.value_or(1) > 1 && shards) {
    out.set_integer("layout.shard_group", *shards, "dp_shard");
  }
}

// Adds what the log says of the run: over those of a config, which may be of another run.
void add_settings_of(const TrainingLog& log, const std::optional<LogFigures>& figures,
                     ImportedScenario& out) {
  const std::string origin = fmt::format("{}'s log", tool_of(log.steps.source).name);
  std::map<LogQuantity, std::int64_t> values;
  for (const auto& [quantity, value] : log.settings) values[quantity] = std::llround(value);
  if (figures && figures->batch > 0) values[LogQuantity::kGlobalBatch] = figures->batch;
  const auto tokens = said(log, LogQuantity::kTokensPerStep);
  const auto length = said(log, LogQuantity::kSequence);
  if (tokens && length && !values.contains(LogQuantity::kGlobalBatch)) {
    values[LogQuantity::kGlobalBatch] = *tokens / *length;
  }
  // A batch of a pipeline's rank is cut into micro-batches.
  if (said(log, LogQuantity::kPp).value_or(1) > 1) values.erase(LogQuantity::kMicroBatch);
  for (const LoggedKey& key : kLoggedKeys) {
    const auto value = values.find(key.quantity);
    if (value == values.end() || value->second < 1) continue;
    const auto known = out.integer(key.path);
    if (known == value->second) continue;
    // Tokenizers count otherwise than configs, and Megatron's own flags know the rule.
    if (key.quantity == LogQuantity::kVocab && known) continue;
    if (known) {
      out.warnings.push_back(fmt::format("{} is {} in the settings and {} in the log, which holds",
                                         key.path, *known, value->second));
    }
    out.set_integer(key.path, value->second, origin);
  }
  if (const auto gpus = gpus_of(log)) out.gpus = gpus;
}

constexpr std::array kConfigEndings = {".sh", ".json", ".toml", ".yaml", ".yml"};

// A file of settings with the log's name, beside it.
std::string config_beside(const std::string& log) {
  for (const char* ending : kConfigEndings) {
    const fs::path file = fs::path(log).replace_extension(ending);
    std::error_code none;
    if (file.string() != log && fs::is_regular_file(file, none)) return file.string();
  }
  return "";
}

Result<ImportSource> source_of(const LogImport& flags, const TrainingLog& log,
                               const DataFolders& folders) {
  ImportSource out;
  out.input.file = log.file;
  out.input.models_folder = folders.models;
  out.input.gpus = gpus_of(log);
  if (flags.config.empty() && log.printed) {
    out.format = log.printed->format;
    out.has_run = true;
    if (out.format == "megatron") {
      // The tokenizer's size comes later than the arguments.
      const auto vocab = said(log, LogQuantity::kVocab);
      const std::string size = vocab ? fmt::format("padded_vocab_size ....... {}\n", *vocab) : "";
      out.input.text = size + log.printed->text;
    } else {
      out.input.text = json_of_python(log.printed->text);
    }
    return out;
  }
  const std::string config = flags.config.empty() ? config_beside(log.file) : flags.config;
  if (config.empty()) return out;
  const auto text = read_text_file(config, {.most_bytes = kMostScriptBytes});
  if (!text) return failure(text.error());
  out.input.text = text_to_import(*text);
  out.input.file = config;
  out.format = detect_format(out.input.text);
  return out;
}

}  // namespace

void add_log_flags(CommandLine app, LogImport& flags) {
  app.add("--config", flags.config,
          "settings of a log that prints none; else a file of its name beside it")
      .type_name("FILE");
  app.add("--warm-up", flags.warm_up, "first steps of each start that do not count")
      .within(std::int64_t{0}, std::int64_t{1'000'000})
      .shows_default();
  add_scenario_values(app, flags.scenario);
}

Result<std::optional<TrainingLog>> find_log(const std::string& file) {
  Result<TrainingLog> log = failure(Errors{});
  if (is_special_file(file)) {
    const auto text = read_text_file(file);
    if (!text) return failure(text.error());
    log = training_log_of(*text, file);
  } else {
    log = read_training_log(file);
  }
  if (!log) return failure(log.error());
  if (log->steps.steps.empty() && !log->printed) return std::optional<TrainingLog>();
  return std::optional(std::move(*log));
}

Result<ImportedLog> import_log(const LogImport& flags, TrainingLog log, const DataFolders& folders,
                               const OutputOptions& output) {
  ImportedLog out;
  out.log = std::move(log);
  if (!out.log.steps.steps.empty()) {
    auto figures = figures_of(out.log, flags.warm_up);
    if (!figures) return failure(figures.error());
    out.figures = std::move(*figures);
  }
  auto source = source_of(flags, out.log, folders);
  if (!source) return failure(source.error());
  if (out.figures) source->printed_batch = out.figures->batch;
  const bool is_alone = source->format.empty();
  source->complete = [&](ImportedScenario& imported) {
    if (is_alone) add_framework(out.log, imported);
    add_settings_of(out.log, out.figures, imported);
  };
  auto draft = read_draft(flags.scenario, std::move(*source), folders, output);
  if (!draft) return failure(draft.error());
  out.draft = std::move(*draft);
  return out;
}

}  // namespace stepcast::cli
