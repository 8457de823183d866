// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "calibrate/protocol/progress.h"
#include "core/atomic_file.h"
#include "core/carried_files.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "launch/mpi_launch.h"
#include "launch/scratch_folder.h"
#include "layout/layout.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kLastLines = 10;

// The resolved scenario, except that the cluster stays as stated: a lab's cluster is a file, which
// no resolved form names.
SortedJson job_scenario(const RunJob& job) {
  SortedJson out = to_json(job.scenario);
  const SortedJson stated = SortedJson::parse(job.stated);
  if (const auto cluster = stated.find("cluster"); cluster != stated.end()) {
    out["cluster"] = *cluster;
  }
  return out;
}

// Processes that run it.
int ranks_of(const RunJob& job) {
  return job.alone ? 1 : static_cast<int>(job.scenario.cluster.gpus());
}

std::string text_of(const RunJob& run, const DataFolders& folders) {
  Job out = job_of("run", folders, run.folder);
  out.backend = run.backend;
  out.scenario = job_scenario(run);
  out.seed = run.seed;
  out.warmup = run.warmup;
  out.steps = run.steps;
  out.numerics_steps = run.numerics_steps;
  out.check_numerics = run.numerics_steps > 0 && !run.alone;
  const Layout& layout = run.scenario.layout;
  if (layout.schedule_text) out.schedule = *layout.schedule_text;
  if (run.alone) out.rank = run.alone->value;
  if (run.backend == Backend::kCuda) out.gpus = ranks_of(run);
  return job_text(out);
}

// One line that is written over, with the time that the phase has left; on terminals alone.
class ProgressLine {
 public:
  explicit ProgressLine(const OutputOptions& output)
      : shown_(!output.quiet && isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (written_) clear_progress();
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const RankReport& report) {
    if (!shown_ || report.event != RankEvent::kProgress || report.rank != 0) return;
    if (!progress_ || report.phase != phase_ || report.done < progress_->done()) {
      progress_.emplace(report.phase, report.total);
      phase_ = report.phase;
      last_ = std::chrono::steady_clock::now();
    }
    advance_to(report.done);
    tell_progress(progress_->line(report.text));
    written_ = true;
  }

 private:
  // The time since the last report is that of the points that it finished.
  void advance_to(std::int64_t done) {
    const std::int64_t finished = done - progress_->done();
    if (finished <= 0) return;
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    for (std::int64_t i = 0; i < finished; ++i) {
      progress_->finish(seconds / static_cast<double>(finished));
    }
    last_ = now;
  }

  bool shown_;
  bool written_ = false;
  std::string phase_;
  std::optional<Progress> progress_;
  std::chrono::steady_clock::time_point last_;
};

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

// `variable` of the environment names another one.
fs::path program_beside(const char* name, const char* variable) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != '\0') return named;
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none).parent_path() / name;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

RankLaunch launch_of(int ranks, const TimeLimits& limits) {
  RankLaunch out;
  out.program.program = rank_program().string();
  out.program.ranks = ranks;
  // Each host of a lab believes that the machine's cores are its own.
  const char* lab = std::getenv("STEPCAST_LAB");
  out.program.bind = lab == nullptr || *lab == '\0';
  out.program.inherited = environment();
  out.limits.total = milliseconds_of(limits.total_s);
  out.limits.silence = milliseconds_of(limits.silence_s);
  return out;
}

// Turns what stepcast-gpu says of its job or of the machine into an error.
Error gpu_error(const LaunchOutcome& outcome) {
  return {ErrorCode::kNotSupported, outcome.message, "", "--backend cuda",
          "stepcast doctor says what this machine has"};
}

Result<LaunchOutcome> launch(RankLaunch ranks, const std::string& text, const std::string& file,
                             const OutputOptions& output) {
  std::optional<ScratchFolder> session;
  if (!ranks.program.alone) {
    auto made = ScratchFolder::create(temporary_folder(), "mpi");
    if (!made) return failure(made.error());
    session.emplace(std::move(*made));
    ranks.program.session_folder = session->path().string();
  }
  const std::string absolute = fs::absolute(file).string();
  if (auto written = write_file_atomically(absolute, text); !written) {
    return failure(written.error());
  }
  ranks.program.arguments = {absolute};
  ProgressLine line(output);
  return launch_ranks(ranks, [&](const RankReport& report) { line.show(report); });
}

}  // namespace

Job job_of(const char* task, const DataFolders& folders, const std::string& results) {
  const auto absolute = [](const std::string& path) {
    return is_carried(path) ? path : fs::absolute(path).string();
  };
  Job out;
  out.task = task;
  out.data = {absolute(folders.models), absolute(folders.topologies), absolute(folders.profiles)};
  out.results = absolute(results);
  out.attention = attention_wanted();
  return out;
}

std::string attention_wanted() {
  const char* name = std::getenv("STEPCAST_ATTENTION");
  return name == nullptr || *name == '\0' ? "fastest" : name;
}

fs::path rank_program() { return program_beside("stepcast-rank", "STEPCAST_RANK_PROGRAM"); }

fs::path gpu_program() { return program_beside("stepcast-gpu", "STEPCAST_GPU_PROGRAM"); }

Result<LaunchOutcome> launch_job(const std::string& text, const std::string& file, int ranks,
                                 const TimeLimits& limits, const OutputOptions& output) {
  return launch(launch_of(ranks, limits), text, file, output);
}

Result<LaunchOutcome> launch_gpu_job(const std::string& text, const std::string& file, int ranks,
                                     const OutputOptions& output, const TimeLimits& limits) {
  RankLaunch gpu = launch_of(ranks, limits);
  gpu.program.program = gpu_program().string();
  gpu.program.alone = ranks == 1;
  gpu.program.bind = false;  // its host threads also move data
  return launch(std::move(gpu), text, file, output);
}

Errors check_gpu_program(const char* what) {
  if (fs::exists(gpu_program())) return {};
  return {{ErrorCode::kNotSupported, fmt::format("cannot be {}: this build has no CUDA", what),
           gpu_program().string(), "--backend", "build stepcast where the CUDA toolkit is"}};
}

int find_gpus(const DataFolders& folders, const std::string& folder, const OutputOptions& output,
              std::vector<std::string>& found) {
  const auto outcome = launch_gpu_job(job_text(job_of("devices", folders, folder)),
                                      (fs::path(folder) / "devices-job.json").string(), 1, output);
  if (!outcome) return report_errors(outcome.error());
  const int code = outcome->end == LaunchEnd::kInput
                       ? report_errors({gpu_error(*outcome)})
                       : report_outcome(*outcome, output, "looking for GPUs");
  if (code != kOk) return code;
  const auto document = JsonDocument::load((fs::path(folder) / "devices.json").string());
  if (!document) return report_errors(document.error());
  ObjectReader reader((*document)->root());
  if (const auto devices = reader.required("devices")) {
    for (const JsonValue& device : devices->items()) found.push_back(device.text().value_or(""));
  }
  reader.finish();
  return (*document)->ok() ? static_cast<int>(kOk) : report_errors((*document)->errors());
}

int report_gpu_outcome(const LaunchOutcome& outcome, const OutputOptions& output) {
  if (outcome.end == LaunchEnd::kInput) return report_errors({gpu_error(outcome)});
  return report_outcome(outcome, output);
}

Result<LaunchOutcome> run_job(const RunJob& job, const DataFolders& folders,
                              const OutputOptions& output) {
  const int ranks = ranks_of(job);
  const std::string file = (fs::path(job.folder) / "job.json").string();
  const std::string text = text_of(job, folders);
  return job.backend == Backend::kCuda ? launch_gpu_job(text, file, ranks, output, job.limits)
                                       : launch_job(text, file, ranks, job.limits, output);
}

int report_outcome(const LaunchOutcome& outcome, const OutputOptions& output, const char* what) {
  for (const std::string& warning : outcome.warnings) note(output, "warning: " + warning);
  if (outcome.ok()) return kOk;
  tell_line(fmt::format("error: {}: {}", what, outcome.message));
  if (outcome.end == LaunchEnd::kInterrupted) return 128 + outcome.signal;
  if (outcome.end == LaunchEnd::kNumerics) return kOutOfTolerance;
  const bool refused = outcome.end == LaunchEnd::kInput || outcome.end == LaunchEnd::kMachine ||
                       outcome.end == LaunchEnd::kOutOfMemory;
  if (refused) return kUsageError;
  const std::size_t lines = outcome.last_lines.size();
  for (std::size_t i = lines - std::min(lines, kLastLines); i < lines; ++i) {
    tell_line("  " + outcome.last_lines[i]);
  }
  if (outcome.end != LaunchEnd::kTimeLimit) return kInternalError;
  tell_line("  allow more seconds with --time-limit, or a smaller run");
  return kUsageError;  // the user's own limit is no fault of the program
}

}  // namespace stepcast::cli
