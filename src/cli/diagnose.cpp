// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/diagnose_log.h"
#include "cli/gpu_profile.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "core/gathered_errors.h"
#include "diagnose/step_diagnosis.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "report/diagnosis_report.h"
#include "report/trace.h"
#include "traces/profiler_trace.h"

namespace stepcast::cli {
namespace {

struct DiagnoseFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::vector<std::string> traces;
  std::string log, before;
  std::string html;
  std::string markdown;
  std::string fit;
  std::optional<std::int32_t> rank;
  bool as_one_step = false;
};

Errors plan_output(const DiagnoseFlags& flags, Output& output) {
  output.plan("-o", flags.output.file);
  output.plan("--html", flags.html);
  output.plan("--md", flags.markdown);
  output.plan("--fit", flags.fit);
  output.protect("SCENARIO", flags.scenario.file);
  output.protect("--log", flags.log);
  output.protect("--before", flags.before);
  for (const std::string& trace : flags.traces) output.protect("--trace", trace);
  for (const auto& value : flags.scenario.values) output.protect("input", value->value);
  Errors errors = output.check();
  if (flags.traces.empty() == flags.log.empty()) {
    errors.push_back({ErrorCode::kMissingKey,
                      flags.traces.empty() ? "is not given: nothing tells how the run went"
                                           : "does not go with --log: traces tell more",
                      "", "--trace", "traces of PyTorch's profiler, or --log with a training log"});
  }
  if (flags.log.empty() && !flags.before.empty()) {
    errors.push_back({ErrorCode::kMissingKey, "holds a training log against an earlier run", "",
                      "--before", "give --log"});
  }
  if (flags.traces.empty() && !(flags.html + flags.fit).empty()) {
    errors.push_back({ErrorCode::kIllegal, "needs traces: a log tells no kernels", "",
                      flags.fit.empty() ? "--html" : "--fit", "give --trace"});
  }
  return errors;
}

Written render(const DiagnoseFlags& flags, const Scenario& scenario, const Prediction& prediction,
               const Diagnosis& diagnosis) {
  if (flags.output.format == "json") return diagnosis_json(scenario, prediction, diagnosis);
  const bool markdown = flags.output.format == "md";
  return diagnosis_table(scenario, diagnosis, markdown ? Form::kMarkdown : text_form(flags.output));
}

Result<std::vector<Trace>> read_traces(const std::vector<std::string>& files) {
  std::vector<Trace> out;
  Errors errors;
  for (const std::string& file : files) {
    if (auto one = read_trace(file)) {
      out.push_back(std::move(*one));
    } else {
      append(errors, one.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

// The forecast as a trace of its own: both sides are then read alike.
Result<Trace> forecast_trace(const Scenario& scenario, const Prediction& prediction) {
  return trace_of(trace_json(scenario, prediction).text(), "the forecast");
}

int diagnose_traces(const DiagnoseFlags& flags, const Scenario& scenario,
                    const DataFolders& folders, Output& output) {
  const auto traces = read_traces(flags.traces);
  if (!traces) return report_errors(traces.error());
  PredictOptions options;
  options.trace = true;
  const auto prediction = predict(scenario, folders, options);
  if (!prediction) return report_errors(prediction.error());
  const auto forecast = forecast_trace(scenario, *prediction);
  if (!forecast) return report_errors(forecast.error());
  DiagnoseRules rules;
  if (flags.rank) rules.rank = RankId(*flags.rank);
  rules.as_one_step = flags.as_one_step;
  const auto diagnosis = diagnose(scenario, *prediction, *forecast, *traces, rules);
  if (!diagnosis) return report_errors(diagnosis.error());
  output.set_main(flags.output, render(flags, scenario, *prediction, *diagnosis));
  if (!flags.html.empty()) {
    output.set_file(flags.html, diagnosis_html(scenario, *prediction, *diagnosis));
  }
  if (!flags.markdown.empty()) {
    output.set_file(flags.markdown, diagnosis_table(scenario, *diagnosis, Form::kMarkdown));
  }
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  if (flags.fit.empty()) return kOk;
  const auto imported = import_files(flags.traces, scenario.cluster.spec);
  if (!imported) return report_errors(imported.error());
  OutputOptions profile = flags.output;
  profile.file = flags.fit;
  return write_gpu_profile(*imported, scenario.cluster.spec, folders, profile);
}

int run_diagnose(const DiagnoseFlags& flags) {
  Output output;
  const Errors errors = plan_output(flags, output);
  if (!errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  const auto scenario = scenario_from_flags(flags.scenario, data->folders);
  if (!scenario) return report_errors(scenario.error());
  note_readings(flags.output, {&*scenario});
  if (flags.traces.empty()) {
    return diagnose_log({flags.log, flags.before, flags.markdown}, *scenario, data->folders,
                        flags.output, output);
  }
  return diagnose_traces(flags, *scenario, data->folders, output);
}

}  // namespace

Command add_diagnose(CommandLine program) {
  auto flags = std::make_shared<DiagnoseFlags>();
  CommandLine app =
      program.add_command("diagnose", "set traces of a run beside its forecast, and name the gaps");
  app.footer(
      "Examples:\n"
      "  stepcast diagnose scenario.json --trace rank0.json.gz\n"
      "  stepcast diagnose scenario.json --trace rank0.json.gz --trace rank1.json.gz \\\n"
      "    --html diagnosis.html --fit mine.json\n"
      "  stepcast diagnose scenario.json --log run.log --before last.log\n"
      "Traces are those of PyTorch's profiler (export_chrome_trace), packed by gzip or not.");
  add_scenario_flags(app, flags->scenario);
  add_output_flags(app, flags->output, {"table", "json", "md"});
  app.add("--trace", flags->traces, "trace of one rank; may be given several times")
      .type_name("FILE")
      .one_word();
  app.add("--log", flags->log, "training log, for the short form: step time alone")
      .type_name("FILE");
  app.add("--before", flags->before,
          "the last run: its training log, or a suite with a case of the log's name")
      .type_name("FILE");
  app.add("--rank", flags->rank,
          "rank that is set beside its forecast (the one that computes "
          "longest)")
      .within(0, 1 << 30);
  app.add_switch("--one-step", flags->as_one_step,
                 "take all that a trace holds as one step, with or without marks");
  app.add("--fit", flags->fit, "also write a profile of what the traces measured")
      .type_name("FILE");
  add_html_flag(app, flags->html);
  add_markdown_flag(app, flags->markdown);
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_diagnose(*flags); }});
}

}  // namespace stepcast::cli
