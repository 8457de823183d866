// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "cli/calibrate_gpu.h"
#include "cli/calibrate_import.h"
#include "cli/commands.h"
#include "cli/launch_calibration.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "core/gathered_errors.h"
#include "launch/signal_watch.h"
#include "layout/scenario.h"

namespace stepcast::cli {
namespace {

struct CalibrateFlags {
  CommandLine app;
  std::vector<std::string> files;
  std::vector<std::string> imports;
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::string backend = "cpu";
  double budget_s = 60;
  double precision = 0.01;
  bool no_grid = false;
  bool keep_journal = false;
  int ranks = 1;
  bool registered_buffers = false;
};

// Each file with the flags laid over it; without a file the flags alone.
Result<std::vector<std::string>> scenario_texts(CalibrateFlags& flags, const DataFolders& folders) {
  std::vector<std::string> files = flags.files;
  if (files.empty()) files.emplace_back();
  std::vector<std::string> out;
  Errors errors;
  for (const std::string& file : files) {
    flags.scenario.file = file;
    auto stated = stated_scenario(flags.scenario, folders);
    if (stated) {
      const bool cpu = flags.backend == "cpu";
      if (stated->scenario.cluster.spec.accelerator.is_cpu() != cpu) {
        errors.push_back(
            {ErrorCode::kIllegal,
             fmt::format("the devices of '{}' are not this machine's {}",
                         stated->scenario.cluster.spec.name, cpu ? "processors" : "GPUs"),
             file, "cluster",
             cpu ? "use {\"base\": \"local\"} with --backend cpu"
                 : "use a cluster of this machine's GPU with --backend cuda"});
      }
      out.push_back(std::move(stated->text));
    } else {
      append(errors, stated.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

int report_profile(int code, const OutputOptions& output) {
  if (code == kOk) {
    note(output, fmt::format("wrote {0} (use it with --profile {0})", output.file));
  }
  return code;
}

Errors check_flags(const CalibrateFlags& flags) {
  Errors errors;
  const bool imports = !flags.imports.empty();
  if (imports && flags.app.flag("--backend").given()) {
    errors.push_back(
        {ErrorCode::kIllegal, "has no effect on an import", "", "--backend", "leave it out"});
  }
  if (imports && !flags.files.empty()) {
    errors.push_back(
        {ErrorCode::kIllegal,
         fmt::format("'{}' is a scenario, and nothing is measured for it", flags.files.front()), "",
         "--import", "give -o before --import, and no scenario"});
  }
  for (const char* flag : {"--ranks", "--registered-buffers"}) {
    if (flags.backend == "cuda" || !flags.app.flag(flag).given()) continue;
    errors.push_back({ErrorCode::kIllegal, "is for GPUs alone", "", flag,
                      "with --backend cuda; on processors the scenarios' cluster says how many"});
  }
  if (flags.registered_buffers && flags.ranks == 1) {
    errors.push_back({ErrorCode::kIllegal, "has no effect on one GPU, which measures no collective",
                      "", "--registered-buffers", "give --ranks N"});
  }
  if (flags.output.file.empty()) {
    errors.push_back(
        {ErrorCode::kMissingKey, "names no profile to write", "", "-o", "give -o PROFILE.json"});
  }
  return errors;
}

int run_calibrate(CalibrateFlags& flags) {
  Errors errors = check_flags(flags);
  const bool imports = !flags.imports.empty();
  Output output;
  output.plan("-o", flags.output.file);
  for (const std::string& file : flags.files) output.protect("SCENARIO", file);
  for (const std::string& file : flags.imports) output.protect("--import", file);
  const Errors unwritable = output.check();
  errors.insert(errors.end(), unwritable.begin(), unwritable.end());
  const auto data = find_data(flags.data);
  if (!data) append(errors, data.error());
  if (!errors.empty()) return report_errors(errors);
  if (imports) {
    return report_profile(
        import_profile(flags.imports, flags.scenario, data->folders, flags.output), flags.output);
  }
  const auto texts = scenario_texts(flags, data->folders);
  if (!texts) return report_errors(texts.error());

  SignalWatch watch;
  CalibrationRequest request;
  request.scenarios = *texts;
  request.folders = data->folders;
  request.profile = flags.output.file;
  request.budget_s = flags.budget_s;
  request.target_half_width = flags.precision;
  request.grid = !flags.no_grid;
  request.keeps_journal = flags.keep_journal;
  request.ranks = flags.ranks;
  request.registered_buffers = flags.registered_buffers;
  if (flags.backend == "cuda") {
    return report_profile(calibrate_gpu(request, flags.output), flags.output);
  }
  const int code = calibrate(request, flags.output);
  if (watch.signal() != 0) {
    note(flags.output,
         fmt::format("interrupted; {}.journal holds what is finished", flags.output.file));
    return 128 + watch.signal();
  }
  return report_profile(code, flags.output);
}

}  // namespace

Command add_calibrate(CommandLine program) {
  auto flags = std::make_shared<CalibrateFlags>();
  CommandLine app = program.add_command(
      "calibrate", "measure this machine's kernels and communication into a profile, or import");
  flags->app = app;
  app.footer(
      "Examples:\n"
      "  stepcast calibrate --backend cpu scenario.json -o mine.json\n"
      "  stepcast calibrate --backend cpu dp2.json pp2.json --budget 120 -o mine.json\n"
      "  stepcast calibrate --backend cuda gpt.json --cluster dgx-h200 -o h200.json\n"
      "  stepcast calibrate --backend cuda gpt.json --ranks 8 -o h200x8.json\n"
      "  stepcast calibrate --import all_reduce.txt trace.json --cluster dgx-h100 -o h100.json\n"
      "A calibration that was ended early continues from its journal, mine.json.journal.");
  app.add("--backend", flags->backend, "measure the processor (cpu) or the GPU (cuda)")
      .one_of({"cpu", "cuda"})
      .shows_default();
  app.add("--import", flags->imports,
          "nccl-tests tables, PyTorch traces or kernel tables to make the profile of, "
          "measured on the devices of --cluster")
      .type_name("FILE...");
  app.add("--budget", flags->budget_s, "seconds for the operations of each scenario")
      .within(1.0, 1e5)
      .shows_default();
  app.add("--spread", flags->precision,
          "measure until each median's 95 % interval is at most this fraction to either side")
      .within(1e-4, 0.5)
      .shows_default();
  app.add_switch("--no-grid", flags->no_grid,
                 "measure only what the scenarios need, and no shapes around it");
  app.add_switch("--keep-journal", flags->keep_journal,
                 "keep the journal of a calibration that is finished: a later one of more "
                 "scenarios goes on from it");
  app.add("--ranks", flags->ranks,
          "with cuda: one process per GPU; two or more also measure NCCL's collectives")
      .within(1, 4096)
      .shows_default();
  app.add_switch(
      "--registered-buffers", flags->registered_buffers,
      "with cuda: run collectives in memory that NCCL has registered, symmetric if possible");
  app.add("SCENARIO", flags->files, "scenario files that the profile should be able to forecast");
  add_scenario_values(app, flags->scenario);
  add_output_flags(app, flags->output, {"table"});
  add_data_flag(app, flags->data);
  return {app, [flags] { return run_calibrate(*flags); }};
}

}  // namespace stepcast::cli
