// SPDX-License-Identifier: Apache-2.0
#include "cli/suite_of_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "acceptance/threshold_file.h"
#include "core/gathered_errors.h"
#include "core/text_file.h"
#include "core/write_rows.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "report/number_text.h"
#include "validate/case_figures.h"
#include "validate/suite_file.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

RunSize size_of(const Draft& draft, const DataFolders& folders) {
  RunSize out;
  const auto held = JsonDocument::from(draft.document, "");
  if (const auto scenario = read_legal_scenario(*held, folders)) {
    out.global_batch = static_cast<double>(scenario->training.global_batch);
    out.sequence = static_cast<double>(scenario->training.sequence_length);
    out.gpus = static_cast<double>(scenario->cluster.gpus());
  }
  return out;
}

// Seven digits: no log has more, and a quotient would have seventeen.
double rounded(double value) { return std::stod(fmt::format("{:.7g}", value)); }

std::string tag_of(const char* name) {
  std::string out;
  for (const char c : std::string_view(name)) {
    out += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

void add_count(std::vector<std::string>& out, std::int64_t count, const char* words) {
  if (count > 0) out.push_back(fmt::format("{} {}", count, words));
}

std::string left_out_words(const ImportedLog& imported) {
  std::vector<std::string> parts;
  const LeftOutLines& left = imported.figures->left_out;
  const LogSteps& steps = imported.log.steps;
  add_count(parts, left.warm_up, "of warm-up");
  add_count(parts, left.disturbed, "behind an evaluation or a checkpoint");
  add_count(parts, left.skipped, "without an update");
  add_count(parts, left.other_batch, "with a smaller batch");
  add_count(parts, left.other_parts, "of other parts between restarts");
  add_count(parts, steps.of_other_ranks, "said by other ranks");
  add_count(parts, steps.unreadable, "without a time");
  return parts.empty() ? "none is left out" : fmt::format("left out: {}", fmt::join(parts, ", "));
}

// Both sorted, so that a suite is the same on every machine.
struct FolderContent {
  std::vector<std::string> files, folders;
};

Result<FolderContent> content_of(const std::string& folder) {
  FolderContent out;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code none;
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    if (at->is_regular_file(none)) out.files.push_back(at->path().string());
    if (at->is_directory(none)) out.folders.push_back(at->path().string());
  }
  if (failed) {
    return failure({ErrorCode::kIo, fmt::format("cannot be read: {}", failed.message()), folder, "",
                    "check the path"});
  }
  std::ranges::sort(out.files);
  std::ranges::sort(out.folders);
  return out;
}

struct FoundLog {
  TrainingLog log;
  bool is_named = false;  // by its own name, not by that of its folder
};

struct FoundLogs {
  std::vector<FoundLog> logs;
  Errors left_out;  // of folders: what is there and becomes no case
};

class LogFinder {
 public:
  // Files as they are named; of a folder, its files that tell steps.
  Result<FoundLogs> find(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      std::error_code none;
      if (fs::is_directory(path, none)) {
        add_folder(path);
      } else {
        add(path, true);
      }
    }
    if (!errors_.empty()) return failure(std::move(errors_));
    return std::move(out_);
  }

 private:
  void add(const std::string& file, bool is_named) {
    Errors& refused = is_named ? errors_ : out_.left_out;
    auto log = find_log(file);
    if (!log) {
      append(refused, log.error());
    } else if (*log && !(*log)->steps.steps.empty()) {
      out_.logs.push_back({std::move(**log), is_named});
    } else {
      refused.push_back(no_steps(*log ? &**log : nullptr, file));
      if (!is_named) refused.back().hint.clear();  // a folder holds what it holds
    }
  }

  void add_folder(const std::string& folder) {
    const auto content = content_of(folder);
    if (!content) {
      append(errors_, content.error());
      return;
    }
    const std::size_t logs = out_.logs.size(), others = out_.left_out.size();
    for (const std::string& file : content->files) add(file, false);
    for (const std::string& inner : content->folders) {
      out_.left_out.push_back({ErrorCode::kNotSupported, "is a folder in a folder", inner, "",
                               "name it too, for the logs in it"});
    }
    if (out_.logs.size() > logs) return;
    if (out_.left_out.size() == others) {
      errors_.push_back(
          {ErrorCode::kNotFound, "holds no training log", folder, "", "files with steps"});
    }
    errors_.insert(errors_.end(), out_.left_out.begin() + static_cast<std::ptrdiff_t>(others),
                   out_.left_out.end());
  }

  FoundLogs out_;
  Errors errors_;
};

// Names of files, and of their folders where two are called alike.
std::vector<std::string> ids_of(const std::vector<FoundLog>& logs) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (const FoundLog& found : logs) {
    const fs::path file(found.log.file);
    std::string id = file.stem().string();
    if (taken.contains(id)) id = file.parent_path().filename().string() + "-" + id;
    for (int count = 2; !taken.insert(id).second; ++count) {
      id = fmt::format("{}-{}", file.stem().string(), count);
    }
    out.push_back(std::move(id));
  }
  return out;
}

CaseFigures figures_in(const ImportedLog& imported, const RunSize& size) {
  CaseFigures out;
  const LogFigures& figures = *imported.figures;
  if (figures.unit == LogQuantity::kTokensPerSecondPerGpu) {
    out.tokens_per_s_per_gpu = rounded(figures.median);
  } else {
    out.step_time_s = rounded(step_seconds(figures.unit, figures.median, size));
  }
  out.step_time_spread =
      std::stod(fmt::format("{:.3g}", std::abs(figures.high - figures.low) / 2 / figures.median));
  out.steps = static_cast<double>(figures.lines);
  const TrainingLog& log = imported.log;
  out.peak_memory_bytes =
      log.most_allocated_bytes ? log.most_allocated_bytes : log.most_reserved_bytes;
  if (out.peak_memory_bytes) out.peak_memory_bytes = std::round(*out.peak_memory_bytes);
  return out;
}

std::string spread_words(const ImportedLog& imported) {
  const LogFigures& figures = *imported.figures;
  const double half = 50 * std::abs(figures.high - figures.low) / figures.median;
  return fmt::format("{}, half of them within {} %, steps {} to {}",
                     counted_text(figures.steps, "step"), number_text(half, 2), figures.first,
                     figures.last);
}

// The case of a suite.
Json case_of(const ImportedLog& imported, const std::string& id, const DataFolders& folders) {
  const LogTool& tool = tool_of(imported.log.steps.source);
  const CaseFigures measured = figures_in(imported, size_of(imported.draft, folders));
  Json out = {{"id", id},
              {"source", fmt::format("{}'s log {}", tool.name,
                                     fs::path(imported.log.file).filename().string())}};
  out["tags"] = std::vector<std::string>{tag_of(tool.name)};
  out["assumed"] = Json::array();
  if (tool.assumed != nullptr) out["assumed"].push_back(tool.assumed);
  out["notes"] = fmt::format("{}{}; lines {}.", kNotesOfALog, spread_words(imported),
                             left_out_words(imported));
  if (measured.peak_memory_bytes && !imported.log.most_allocated_bytes) {
    out["convention"] = Json{{"memory", "reserved"}};
  }
  out["measured"] = json_of(measured);
  out["scenario"] = Json(imported.draft.document);
  return out;
}

// The step time that a file of thresholds allows, which is of one layout.
Result<std::optional<double>> accepted_step(const std::string& file, std::size_t logs) {
  if (file.empty()) return std::optional<double>();
  if (logs != 1) {
    return failure({ErrorCode::kIllegal,
                    fmt::format("is of one layout, and there are {}",
                                counted_text(static_cast<std::int64_t>(logs), "log")),
                    "", "--acceptance", "give one log"});
  }
  const auto text = read_text_file(file);
  if (!text) return failure(text.error());
  const auto thresholds = read_threshold_file(*text, file);
  if (!thresholds) return failure(thresholds.error());
  return std::optional(thresholds->most_step_s);
}

}  // namespace

Error no_steps(const TrainingLog* log, const std::string& file) {
  const std::string found =
      log != nullptr && log->printed
          ? fmt::format("prints settings in line {}, and no step after them", log->printed->line)
          : "holds no step of a training log";
  return {ErrorCode::kFormat, found, file, "",
          "a log of Megatron-LM, NeMo, torchtitan, DeepSpeed, Hugging Face's Trainer, Composer, "
          "MaxText or MLPerf, or a table of W&B"};
}

std::string words_on(const ImportedLog& imported) {
  const TrainingLog& log = imported.log;
  const LogFigures& figures = *imported.figures;
  const bool per_gpu = figures.unit == LogQuantity::kTokensPerSecondPerGpu;
  const std::string what =
      per_gpu ? fmt::format("{} tokens/s/GPU", number_text(figures.median))
      : figures.unit == LogQuantity::kSeconds
          ? time_text(Seconds(figures.median)) + " a step"
          : fmt::format("{} {}/s", number_text(figures.median),
                        figures.unit == LogQuantity::kStepsPerSecond     ? "steps"
                        : figures.unit == LogQuantity::kSamplesPerSecond ? "samples"
                                                                         : "tokens");
  std::string out = fmt::format("{}: {}: {}, the median of {}; lines {}", log.file,
                                tool_of(log.steps.source).name, what, spread_words(imported),
                                left_out_words(imported));
  if (log.steps.not_numbers > 0) {
    out +=
        fmt::format("; the loss is no number in {}", counted_text(log.steps.not_numbers, "line"));
  }
  for (const std::string& text : log.notes) out += "; " + text;
  return out;
}

Result<Written> suite_of_logs(const LogImport& flags, const std::vector<std::string>& paths,
                              const std::string& suite_file, const std::string& case_id,
                              const DataFolders& folders, const OutputOptions& output) {
  auto suite = SuiteFile::open(suite_file);
  if (!suite) return failure(suite.error());
  auto found = LogFinder().find(paths);
  if (!found) return failure(found.error());
  std::vector<FoundLog>& logs = found->logs;
  std::vector<std::string> ids = ids_of(logs);
  if (!case_id.empty()) {
    if (logs.size() != 1) {
      return failure({ErrorCode::kIllegal,
                      fmt::format("names one case, and there are {}",
                                  counted_text(static_cast<std::int64_t>(logs.size()), "log")),
                      "", "--case", "give one log, or leave it out: cases are named after logs"});
    }
    ids.front() = case_id;
  }
  const auto most = accepted_step(flags.acceptance, logs.size());
  if (!most) return failure(most.error());
  // One bad log of a folder leaves the others, and is named.
  Errors errors, left_out = std::move(found->left_out);
  std::vector<ImportedLog> read;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const bool is_named = logs[i].is_named;
    auto imported = import_log(flags, std::move(logs[i].log), folders, output);
    if (!imported) {
      append(is_named ? errors : left_out, imported.error());
      continue;
    }
    Json one = case_of(*imported, ids[i], folders);
    if (*most) one["most_step_time_s"] = rounded(**most);
    suite->add(std::move(one), folders);
    imported->log.steps.steps.clear();
    read.push_back(std::move(*imported));
  }
  if (read.empty()) append(errors, left_out);
  if (!errors.empty()) return failure(std::move(errors));
  for (const Error& error : left_out) note(output, "left out: " + to_string(error));
  for (const ImportedLog& one : read) {
    note(output, words_on(one));
    print_notes(one.draft, output);
  }
  return suite->text();
}

}  // namespace stepcast::cli
