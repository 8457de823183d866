// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/calibrate_job.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_job.h"
#include "cli/scenario_flags.h"
#include "launch/scratch_folder.h"
#include "program/executable.h"
#include "report/number_text.h"
#include "report/validation_json.h"
#include "report/validation_table.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

struct ValidateFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::string backend = "cpu";
  std::string calibrate = "auto";
  double budget_s = 60;
  std::string keep;
  std::vector<std::string> tolerances;
  int steps = 10;
  int warmup = 2;
  std::uint64_t seed = 1;
  double time_limit_s = 0;
  bool no_numerics = false;
};

void append(Errors& errors, const Errors& more) {
  errors.insert(errors.end(), more.begin(), more.end());
}

Errors check_flags(const ValidateFlags& flags) {
  Errors errors;
  if (flags.backend == "cuda") {
    errors.push_back({ErrorCode::kNotSupported, "cuda is not supported yet: it is not built", "",
                      "--backend", "use cpu"});
  }
  std::error_code none;
  if (!flags.keep.empty() && fs::exists(flags.keep, none) &&
      (!fs::is_directory(flags.keep, none) || !fs::is_empty(flags.keep, none))) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("'{}' is there and is no empty folder", flags.keep), "", "--keep",
                      "name a new folder"});
  }
  return errors;
}

Result<std::vector<Tolerance>> read_tolerances(const ValidateFlags& flags) {
  std::vector<Tolerance> out;
  Errors errors;
  for (const std::string& text : flags.tolerances) {
    if (auto one = parse_validation_tolerance(text)) {
      out.push_back(std::move(*one));
    } else {
      append(errors, one.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Errors check_runnable(const Scenario& scenario) {
  Errors errors;
  if (!scenario.cluster.spec.accelerator.is_cpu()) {
    errors.push_back(
        {ErrorCode::kIllegal,
         fmt::format("the devices of '{}' are {}, and the backend cpu runs on "
                     "processors",
                     scenario.cluster.spec.name, scenario.cluster.spec.accelerator.title),
         "", "cluster", "use {\"base\": \"local\"}, or a cluster whose accelerator is \"cpu\""});
  }
  append(errors, check_executable(scenario));
  return errors;
}

struct Forecast {
  Prediction prediction;
  std::vector<OperationPrice> prices;  // of rank 0, whose role has most kinds of operations
};

Result<Forecast> forecast(const Scenario& scenario, const DataFolders& folders) {
  auto prediction = predict(scenario, folders);
  if (!prediction) return failure(prediction.error());
  auto prices = operation_table(scenario, folders, RankId(0));
  if (!prices) return failure(prices.error());
  return Forecast{std::move(*prediction), std::move(*prices)};
}

// Whether any of it rests on a data sheet rather than on measurements.
bool is_measured(const Forecast& forecast) {
  for (const OperationPrice& price : forecast.prices) {
    if (price.provenance == Provenance::kDataSheet) return false;
  }
  return forecast.prediction.provenance[static_cast<std::size_t>(Provenance::kDataSheet)] == 0;
}

bool names_file(const std::string& profile) {
  return profile.find('/') != std::string::npos || profile.ends_with(".json");
}

// The forecast from the profile that the user named, calibrated where --calibrate says so: into the
// named file, which may not be there yet, else into `folder`. The only place that calibrates.
Result<Forecast> calibrated_forecast(const ValidateFlags& flags, StatedScenario& stated,
                                     const DataRoot& data, const std::string& folder) {
  Scenario& scenario = stated.scenario;
  std::error_code none;
  const bool file = names_file(scenario.profile);
  const bool automatic = flags.calibrate == "auto";
  const bool to_be_made = automatic && file && !fs::exists(scenario.profile, none);
  if (flags.calibrate != "always" && !to_be_made) {
    auto known = forecast(scenario, data.folders);
    // "none" is a wish to see the data sheet's forecast.
    const bool enough = flags.calibrate == "never" || scenario.profile == "none";
    if (!known || enough || is_measured(*known)) return known;
  }
  // What another calibration has measured is not this command's to replace.
  const bool keeps = automatic && file && !to_be_made;
  if (keeps) {
    note(flags.output, fmt::format("note: {} lacks what this layout needs: it is measured for this "
                                   "run alone (--calibrate always replaces the file)",
                                   scenario.profile));
  }
  const auto profile = calibrate_for(
      {stated.text}, data, flags.output,
      file && !keeps ? scenario.profile : (fs::path(folder) / "profile.json").string(),
      flags.budget_s);
  if (!profile) return failure(profile.error());
  scenario.profile = *profile;
  return forecast(scenario, data.folders);
}

// Memory needs no measurement: what does not fit is neither calibrated nor run.
Result<Prediction> data_sheet_forecast(const Scenario& scenario, const DataFolders& folders) {
  Scenario unmeasured = scenario;
  unmeasured.profile = "none";
  return predict(unmeasured, folders);
}

int refuse_too_large(const Prediction& prediction) {
  fmt::print(stderr,
             "error: the run needs {} GiB on its fullest rank, of {} GiB that a rank has (see "
             "stepcast predict)\n",
             gib_text(prediction.peak_device), gib_text(prediction.device_memory));
  return kDoesNotFit;
}

std::string render(const ValidateFlags& flags, const Scenario& scenario,
                   const Validation& validation) {
  const std::string& format = flags.output.format;
  if (format == "json") return validation_json(scenario, validation);
  if (format == "md") return validation_markdown(scenario, validation);
  if (format == "junit") return validation_junit(scenario, validation);
  return validation_table(scenario, validation, {.color = wants_color(flags.output)});
}

Result<Validation> read_run(const ValidateFlags& flags, const Scenario& scenario,
                            const DataFolders& folders, Forecast forecast,
                            const std::vector<Tolerance>& tolerances, const std::string& folder) {
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  const auto files = read_rank_files(folder, program, grid);
  if (!files) return failure(files.error());
  MeasuredRun measured = measure(scenario, program, grid, *files);
  auto prices = operation_table(scenario, folders, measured.critical_rank);
  if (!prices) return failure(prices.error());
  return compare(std::move(forecast.prediction), std::move(measured), *prices,
                 {!flags.no_numerics, tolerances});
}

// From here on there is a folder for the ranks' files, and Ctrl-C is noted.
int run_and_compare(const ValidateFlags& flags, StatedScenario& stated, const DataRoot& data,
                    const std::vector<Tolerance>& tolerances, const ScratchFolder& scratch,
                    Output& output) {
  const std::string folder = flags.keep.empty() ? scratch.path().string() : flags.keep;
  const auto memory = data_sheet_forecast(stated.scenario, data.folders);
  if (!memory) return report_errors(memory.error());
  if (!memory->fits) return refuse_too_large(*memory);
  auto expected = calibrated_forecast(flags, stated, data, folder);
  if (scratch.interrupted() != 0) return 128 + scratch.interrupted();
  if (!expected) return report_failed_calibration(expected.error());

  const RunJob job{stated.scenario,    stated.text,       folder,
                   flags.seed,         flags.warmup,      flags.steps + 1,  // so many periods
                   !flags.no_numerics, flags.time_limit_s};
  const auto outcome = run_job(job, data.folders, flags.output);
  if (!outcome) return report_errors(outcome.error());
  if (const int code = report_outcome(*outcome, flags.output); code != kOk) return code;

  const auto validation =
      read_run(flags, stated.scenario, data.folders, std::move(*expected), tolerances, folder);
  if (!validation) {
    report_errors(validation.error());
    return kInternalError;  // the ranks wrote what they should not
  }
  output.set_main(flags.output, render(flags, stated.scenario, *validation));
  if (const int code = output.commit(); code != kOk) return code;
  return validation->passed() ? kOk : kOutOfTolerance;
}

int run_validate(const ValidateFlags& flags) {
  Output output;
  output.plan("-o", flags.output.file);
  output.protect("SCENARIO", flags.scenario.file);
  for (const auto& value : flags.scenario.values) output.protect("input", value->value);
  Errors errors = output.check();
  append(errors, check_flags(flags));
  const auto tolerances = read_tolerances(flags);
  if (!tolerances) append(errors, tolerances.error());
  const auto data = find_data(flags.data);
  if (!data) append(errors, data.error());
  if (!errors.empty()) return report_errors(errors);
  auto stated = stated_scenario(flags.scenario, data->folders);
  if (!stated) return report_errors(stated.error());
  errors = check_runnable(stated->scenario);
  if (!errors.empty()) return report_errors(errors);

  const char* temporary = std::getenv("TMPDIR");
  const auto scratch = ScratchFolder::create(
      temporary != nullptr && *temporary != '\0' ? temporary : "/tmp", "validate");
  if (!scratch) return report_errors(scratch.error());
  std::error_code failed;
  if (!flags.keep.empty() && !fs::is_directory(flags.keep, failed) &&
      !fs::create_directories(flags.keep, failed)) {
    return report_errors(
        {{ErrorCode::kIo, fmt::format("'{}' cannot be made: {}", flags.keep, failed.message()), "",
          "--keep", "name a folder in one that you may write to"}});
  }
  return run_and_compare(flags, *stated, *data, *tolerances, *scratch, output);
}

void add_run_flags(CLI::App& app, ValidateFlags& flags) {
  app.add_option("--backend", flags.backend, "what runs the layout: cpu, or cuda (not built yet)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--calibrate", flags.calibrate,
                 "measure what the profile lacks: auto, never, or always all of it")
      ->check(CLI::IsMember({"auto", "never", "always"}))
      ->capture_default_str();
  app.add_option("--budget", flags.budget_s, "seconds for the operations of its own calibration")
      ->check(CLI::Range(1.0, 1e5))
      ->capture_default_str();
  app.add_option("--steps", flags.steps, "measured steps")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--warmup", flags.warmup, "steps before them")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--tolerance", flags.tolerances,
                 "fail beyond it: step_time, peak_memory (of the measured one) or bubble_fraction "
                 "(difference)")
      ->type_name("FIGURE=LIMIT")
      ->allow_extra_args(false);
  app.add_flag("--no-numerics", flags.no_numerics, "do not compare with one rank alone");
  app.add_option("--time-limit", flags.time_limit_s, "end the run after so many seconds; 0: never")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS");
  app.add_option("--keep", flags.keep, "keep the ranks' files in this folder")->type_name("FOLDER");
  app.add_option("--seed", flags.seed, "of weights and text")->capture_default_str();
}

}  // namespace

Command add_validate(CLI::App& program) {
  auto flags = std::make_shared<ValidateFlags>();
  CLI::App* app =
      program.add_subcommand("validate", "run a layout for real and set measured beside forecast");
  app->allow_extras();
  app->footer(
      "Examples:\n"
      "  stepcast validate scenario.json --backend cpu --profile mine.json\n"
      "  stepcast validate scenario.json --backend cpu --pp 2 --dp 2 \\\n"
      "    --tolerance step_time=0.10 --tolerance peak_memory=0.02 --format junit -o result.xml\n"
      "Exit code 5: the numerics differ, or an error is beyond its tolerance.");
  add_scenario_flags(*app, flags->scenario);
  add_run_flags(*app, *flags);
  add_output_flags(*app, flags->output, {"table", "json", "md", "junit"});
  add_data_flag(*app, flags->data);
  return {app, [flags] { return run_validate(*flags); }};
}

}  // namespace stepcast::cli
