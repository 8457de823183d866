// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <new>
#include <optional>

#include "cli/commands.h"
#include "cli/launch_run.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "cli/validate_baseline.h"
#include "cli/validate_forecast.h"
#include "core/failed_write.h"
#include "core/gathered_errors.h"
#include "core/machine_errors.h"
#include "core/text/escape.h"
#include "layout/scenario.h"
#include "predict/pricing.h"
#include "predict/timed_orders.h"
#include "program/program.h"
#include "report/junit.h"
#include "report/number_text.h"
#include "report/prediction_table.h"
#include "report/trace.h"
#include "report/validation_json.h"
#include "report/validation_table.h"
#include "validate/measured_slices.h"

namespace stepcast::cli {
namespace {

namespace fs = std::filesystem;

struct ValidateFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::string backend = "cpu";
  CalibrationChoice calibration;
  std::string keep;
  std::string html;
  std::string trace;
  std::string markdown;
  std::vector<std::string> tolerances;
  BaselineFlags baseline;
  int steps = 10;
  int warmup = 2;
  std::uint64_t seed = 1;
  TimeLimits limits;
  bool no_numerics = false;
  int numerics_steps = 3;
  std::optional<std::int32_t> rank;
};

ValidatedRun run_of(const ValidateFlags& flags, const Scenario& scenario) {
  ValidatedRun run;
  if (flags.backend == "cuda") run.backend = Backend::kCuda;
  // The only rank of a layout is the whole layout, so nothing is left out.
  const bool whole = scenario.cluster.gpus() == 1 && flags.rank == 0;
  if (flags.rank && !whole) run.alone = RankId(*flags.rank);
  const bool compares = !flags.no_numerics && flags.numerics_steps > 0 && !run.alone;
  if (compares) run.limits = numerics_limits(scenario.training.precision);
  return run;
}

Errors check_flags(const ValidateFlags& flags) {
  Errors errors;
  if (flags.rank && flags.backend != "cuda") {
    errors.push_back({ErrorCode::kNotSupported,
                      "one rank alone is not run by the CPU backend, on which ranks share cores",
                      "", "--rank", "use --backend cuda, or run the whole layout"});
  }
  std::error_code none;
  if (!flags.keep.empty() && fs::exists(flags.keep, none) &&
      (!fs::is_directory(flags.keep, none) || !fs::is_empty(flags.keep, none))) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("'{}' exists and is not an empty folder", flags.keep), "",
                      "--keep", "name a new folder"});
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

// A layout that does not fit is forecast by the data sheet, and not run.
Written render_too_large(const ValidateFlags& flags, const Scenario& scenario,
                         const Prediction& prediction) {
  const std::string& format = flags.output.format;
  const std::string why =
      fmt::format("the run needs {} GiB on its fullest rank, of {} GiB that a rank has",
                  gib_text(prediction.peak_device), gib_text(prediction.device_memory));
  if (format == "json") return validation_json(scenario, prediction);
  if (format == "md") return prediction_table(scenario, prediction, Form::kMarkdown);
  if (format == "junit") return junit_xml("stepcast validate", {junit_gate({{"memory", why}})});
  if (format == "github") return github_command("error", "memory", why);
  return prediction_table(scenario, prediction, text_form(flags.output));
}

int report_too_large(const ValidateFlags& flags, const Scenario& scenario,
                     const Prediction& prediction, Output& output) {
  output.set_main(flags.output, render_too_large(flags, scenario, prediction));
  if (!flags.html.empty()) output.set_file(flags.html, prediction_html(scenario, prediction));
  if (!flags.markdown.empty()) {
    output.set_file(flags.markdown, prediction_table(scenario, prediction, Form::kMarkdown));
  }
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  tell_line(
      fmt::format("error: the run needs {} GiB on its fullest rank, of {} GiB that a rank has",
                  gib_text(prediction.peak_device), gib_text(prediction.device_memory)));
  return kDoesNotFit;
}

Written render(const ValidateFlags& flags, const Scenario& scenario, const Validation& validation) {
  const std::string& format = flags.output.format;
  if (format == "json") return validation_json(scenario, validation);
  if (format == "md") return validation_table(scenario, validation, Form::kMarkdown);
  if (format == "junit") return validation_junit(scenario, validation);
  if (format == "github") return validation_github(validation);
  return validation_table(scenario, validation, text_form(flags.output));
}

struct ComparedRun {
  Validation validation;
  std::vector<TraceSlice> slices;  // of the run
};

Result<ComparedRun> read_run(const ValidatedRun& run, const Scenario& scenario,
                             const DataFolders& folders, Prediction forecast,
                             const std::vector<Tolerance>& tolerances, const std::string& folder) {
  const Program program = lower(scenario);
  const RankGrid grid(scenario.layout);
  const auto files = read_rank_files(folder, program, grid, run.alone);
  if (!files) return failure(files.error());
  MeasuredRun measured = measure(scenario, program, grid, *files);
  auto prices = operation_table(scenario, folders, measured.critical_rank, run.on_gpu());
  if (!prices) return failure(prices.error());
  ComparedRun out{
      compare(std::move(forecast), std::move(measured), *prices, {run.limits, tolerances}),
      measured_slices(program, grid, *files)};
  if (run.alone) out.validation.alone = rank_alone(program, grid, *run.alone);
  return out;
}

// Minutes are not spent on a reference that ends without memory.
int check_reference(const StatedScenario& stated, const DataFolders& folders) {
  const auto reference = reference_forecast(stated, folders);
  if (!reference) return report_errors(reference.error());
  if (reference->fits) return kOk;
  tell_line(fmt::format(
      "error: numerics are held against the whole model in fp32 on one GPU, which needs "
      "{} GiB of {} GiB: give --no-numerics, or a smaller model",
      gib_text(reference->peak_device), gib_text(reference->device_memory)));
  return kDoesNotFit;
}

// A run that is finished cost minutes: until its report is out, the ranks' files stay.
class KeptRun {
 public:
  KeptRun(ScratchFolder& scratch, const std::string& keep) : scratch_(scratch), keep_(keep) {}
  KeptRun(const KeptRun&) = delete;
  KeptRun& operator=(const KeptRun&) = delete;
  ~KeptRun() {
    if (delivered_) return;
    if (keep_.empty()) scratch_.keep();
    try {
      tell_line("the files of the finished run are kept in " +
                (keep_.empty() ? scratch_.path().native() : keep_));
    } catch (const std::bad_alloc&) {
      tell_out_of_memory();
    }
  }
  void delivered() { delivered_ = true; }

 private:
  ScratchFolder& scratch_;
  const std::string& keep_;
  bool delivered_ = false;
};

// The formats for people say it themselves.
void note_busy_machine(const OutputOptions& output, const Validation& validation) {
  const std::string busy = busy_machine_text(validation.measured);
  const bool is_for_programs = output.format == "json" || output.format == "junit";
  if (is_for_programs && !busy.empty()) note(output, "note: " + busy);
}

RunJob run_job_of(const ValidateFlags& flags, const ValidatedRun& run, const StatedScenario& stated,
                  const std::string& folder) {
  return {stated.scenario,
          stated.text,
          folder,
          flags.seed,
          flags.warmup,
          flags.steps + 1,  // so many periods
          run.limits ? flags.numerics_steps : 0,
          flags.limits,
          run.backend,
          run.alone};
}

// From here on there is a folder for the ranks' files, and Ctrl-C is noted.
int run_and_compare(const ValidateFlags& flags, const ValidatedRun& run, StatedScenario& stated,
                    const DataRoot& data, const std::vector<Tolerance>& tolerances,
                    const RecordedRun& recorded, ScratchFolder& scratch, Output& output) {
  const std::string folder = flags.keep.empty() ? scratch.path().string() : flags.keep;
  const auto memory = data_sheet_forecast(run, stated.scenario, data.folders, !flags.html.empty());
  if (!memory) return report_errors(memory.error());
  if (!memory->fits) return report_too_large(flags, stated.scenario, *memory, output);
  if (run.limits && run.on_gpu()) {
    const int code = check_reference(stated, data.folders);
    if (code != kOk) return code;
  }
  const int prepared = prepare_profile(flags.calibration, run, stated, data, folder, flags.output);
  if (scratch.interrupted() != 0) return 128 + scratch.interrupted();
  if (prepared != kOk) return prepared;
  const auto pricing = make_pricing(stated.scenario, data.folders, run.on_gpu());
  if (!pricing) return report_errors(pricing.error());
  keep_timed_orders(**pricing, stated.scenario);
  auto expected = forecast(run, stated.scenario, data.folders, !flags.html.empty());
  if (!expected) return report_errors(expected.error());

  const auto outcome = run_job(run_job_of(flags, run, stated, folder), data.folders, flags.output);
  if (!outcome) return report_errors(outcome.error());
  const int code = run.on_gpu() ? report_gpu_outcome(*outcome, flags.output)
                                : report_outcome(*outcome, flags.output);
  if (outcome->end == LaunchEnd::kHung) {
    tell_line("  allow more seconds between reports with --silence-limit");
  }
  if (code != kOk) return code;

  KeptRun kept(scratch, flags.keep);
  auto compared =
      read_run(run, stated.scenario, data.folders, std::move(*expected), tolerances, folder);
  if (!compared) {
    const int machine = report_errors(compared.error());
    // Else the ranks wrote what they should not.
    return of_machine(compared.error()) ? machine : static_cast<int>(kInternalError);
  }
  Validation& validation = compared->validation;
  recorded.judge(stated.scenario, run, validation, output);
  output.set_main(flags.output, render(flags, stated.scenario, validation));
  if (!flags.html.empty()) {
    output.set_file(flags.html, validation_html(stated.scenario, validation, compared->slices));
  }
  if (!flags.trace.empty()) {
    output.set_file(flags.trace, run_trace_json(stated.scenario, validation, compared->slices));
  }
  if (!flags.markdown.empty()) {
    output.set_file(flags.markdown, validation_table(stated.scenario, validation, Form::kMarkdown));
  }
  if (const int written = output.commit(); written != kOk) return written;
  kept.delivered();
  note_written(flags.output, flags.html);
  recorded.tell(validation, flags.output);
  note_busy_machine(flags.output, validation);
  if (!validation.within_limits()) return kOutOfTolerance;
  return validation.regressed() ? kRegression : kOk;
}

int run_validate(const ValidateFlags& flags) {
  Output output;
  output.plan("-o", flags.output.file);
  output.plan("--html", flags.html);
  output.plan("--trace", flags.trace);
  output.plan("--md", flags.markdown);
  plan_baseline(flags.baseline, output);
  output.protect("SCENARIO", flags.scenario.file);
  for (const auto& value : flags.scenario.values) output.protect("input", value->value);
  Errors errors = output.check();
  append(errors, check_flags(flags));
  const auto tolerances = read_tolerances(flags);
  if (!tolerances) append(errors, tolerances.error());
  const auto recorded = RecordedRun::read(flags.baseline);
  if (!recorded) append(errors, recorded.error());
  const auto data = find_data(flags.data);
  if (!data) append(errors, data.error());
  if (!errors.empty()) return report_errors(errors);
  auto stated = stated_scenario(flags.scenario, data->folders);
  if (!stated) return report_errors(stated.error());
  note_readings(flags.output, {&stated->scenario});
  const ValidatedRun run = run_of(flags, stated->scenario);
  errors = check_runnable(run, stated->scenario);
  if (errors.empty()) errors = recorded->check(stated->scenario, run, flags.output);
  if (!errors.empty()) return report_errors(errors);

  auto scratch = ScratchFolder::create(temporary_folder(), "validate");
  if (!scratch) return report_errors(scratch.error());
  if (run.on_gpu()) {
    const int code = look_for_gpus(run, stated->scenario, data->folders, *scratch, flags.output);
    if (code != kOk) return code;
  }
  std::error_code failed;
  if (!flags.keep.empty() && !fs::is_directory(flags.keep, failed) &&
      !fs::create_directories(flags.keep, failed)) {
    return report_errors(
        {{ErrorCode::kIo, fmt::format("'{}' cannot be made: {}", flags.keep, failed.message()), "",
          "--keep",
          hint_of_failed_write(failed.value(), "name a folder in one that you may write to")}});
  }
  return run_and_compare(flags, run, *stated, *data, *tolerances, *recorded, *scratch, output);
}

void add_run_flags(CommandLine app, ValidateFlags& flags) {
  app.add("--backend", flags.backend, "what runs the layout: cpu or cuda")
      .one_of({"cpu", "cuda"})
      .shows_default();
  app.add("--calibrate", flags.calibration.when,
          "measure what the profile lacks (auto), nothing (never), or everything (always)")
      .one_of({"auto", "never", "always"})
      .shows_default();
  app.add("--budget", flags.calibration.budget_s,
          "seconds that its own calibration may spend on operations")
      .within(1.0, 1e5)
      .shows_default();
  app.add("--steps", flags.steps, "number of measured steps").within(1, 1000000).shows_default();
  app.add("--warmup", flags.warmup, "number of steps before the measured ones")
      .within(0, 1000000)
      .shows_default();
  app.add("--tolerance", flags.tolerances,
          "fail when an error is larger: step_time, peak_memory, device_memory (relative to the "
          "measured figure) or bubble_fraction (difference)")
      .type_name("FIGURE=LIMIT")
      .one_word();
  add_baseline_flags(app, flags.baseline);
  app.add_switch("--no-numerics", flags.no_numerics, "do not compare with one rank alone");
  app.add("--numerics-steps", flags.numerics_steps, "number of steps whose losses are compared")
      .within(0, 1000000)
      .shows_default();
  app.add("--rank", flags.rank,
          "with cuda: run this rank of the layout alone, on one GPU, without communication")
      .within(0, 1 << 30);
  app.add("--time-limit", flags.limits.total_s, "end the run after this many seconds; 0: never")
      .within(0.0, 1e6)
      .type_name("SECONDS");
  app.add("--silence-limit", flags.limits.silence_s,
          "end the run when no rank has reported for so long, as while a host updates states that "
          "are offloaded")
      .within(1.0, 1e6)
      .shows_default()
      .type_name("SECONDS");
  app.add("--keep", flags.keep, "keep the ranks' files in this folder").type_name("FOLDER");
  app.add("--seed", flags.seed, "seed of the weights and the text").shows_default();
}

}  // namespace

Command add_validate(CommandLine program) {
  auto flags = std::make_shared<ValidateFlags>();
  CommandLine app =
      program.add_command("validate", "run a layout for real and set measured beside forecast");
  app.footer(
      "Examples:\n"
      "  stepcast validate scenario.json --backend cpu --profile mine.json\n"
      "  stepcast validate scenario.json --backend cpu --pp 2 --dp 2 \\\n"
      "    --tolerance step_time=0.10 --tolerance peak_memory=0.02 --format junit -o result.xml\n"
      "  stepcast validate llama-70b.json --backend cuda --rank 0\n"
      "  stepcast validate scenario.json --baseline run.json --format github --md summary.md\n"
      "Exit code 5: the numerics differ, or an error is beyond its tolerance; 4: the forecast or\n"
      "the run is further from the baseline than --drift allows; 3: it does not fit (the forecast\n"
      "is still printed).");
  add_scenario_flags(app, flags->scenario);
  app.flag("--profile")
      .help(
          "measured costs; a file that does not exist is measured and written; none takes kernels "
          "from the data sheet, collectives stay measured");
  add_run_flags(app, *flags);
  add_output_flags(app, flags->output, {"table", "json", "md", "junit", "github"});
  add_html_flag(app, flags->html);
  app.add("--trace", flags->trace, "write the measured step of median length as a Chrome trace")
      .type_name("FILE");
  add_markdown_flag(app, flags->markdown);
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_validate(*flags); }});
}

}  // namespace stepcast::cli
