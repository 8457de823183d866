// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/price_notes.h"
#include "cli/require.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "plan/lost_part.h"
#include "plan/offers/layout_ranking.h"
#include "plan/what_if.h"
#include "predict/choose_profile.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "report/choice_words.h"
#include "report/forecast_report.h"
#include "report/memory_timeline.h"
#include "report/number_text.h"
#include "report/prediction_table.h"
#include "report/trace.h"

namespace stepcast::cli {
namespace {

struct PredictFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::string trace;
  std::string memory_timeline;
  std::string html;
  std::string prices;
  PredictOptions options;
  std::string flops = name_of(FlopCount::kFull);
  std::uint64_t seed = 0;
  int threads = 0;
  std::int64_t samples = 0;
  bool explain = false;
  bool pipeline = false;
  bool unfolded = false;
  bool no_contention = false;
  std::vector<std::string> what_if;
  Require require;
};

Written render(const OutputOptions& output, const ForecastReport& report) {
  if (output.format == "json") return forecast_json(report);
  if (output.format == "csv") return forecast_csv(report);
  return forecast_text(report, output.format == "md" ? Form::kMarkdown : text_form(output));
}

// Viewers in a browser take long over a larger file, and nothing has told the user how large it is.
constexpr std::size_t kLargeTrace = 50'000'000;

void tell_trace(const PredictFlags& flags, std::size_t bytes) {
  note(flags.output, fmt::format("wrote {} (opens in Perfetto)", flags.trace));
  if (bytes <= kLargeTrace) return;
  note(flags.output,
       fmt::format("note: {} has {:.0f} MB, most of it passes of micro-batches: a smaller "
                   "--global-batch shows the same pipeline in less, and Perfetto also reads what "
                   "gzip makes of the file",
                   flags.trace, static_cast<double>(bytes) / 1e6));
}

PredictOptions options_of(const PredictFlags& flags) {
  PredictOptions out = flags.options;
  out.fold = !flags.unfolded;
  out.contention = !flags.no_contention;
  out.samples = {flags.samples, flags.seed, threads_of(flags.threads)};
  out.flops = flags.flops == name_of(FlopCount::kFull) ? FlopCount::kFull : FlopCount::kCausal;
  out.trace = !flags.trace.empty() || !flags.memory_timeline.empty() || !flags.html.empty() ||
              flags.pipeline;
  out.collectives = flags.explain || flags.output.format == "json" || out.trace;
  return out;
}

// "node3 and node4".
std::string lost_parts(const PredictFlags& flags) {
  std::vector<std::string> parts;
  for (const std::string& text : flags.what_if) {
    if (std::string part = lost_part_of(text); !part.empty()) parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

// Tells what NCCL does otherwise on the changed cluster: such a change may cost some percent at
// once.
Errors note_choices(const PredictFlags& flags, const Scenario& stated, const Scenario& changed,
                    const DataFolders& folders) {
  const auto before = make_pricing(stated, folders);
  if (!before) return before.error();
  const auto after = make_pricing(changed, folders);
  if (!after) return after.error();
  const std::string other =
      changed_choice(traffic_choices(stated, **before), traffic_choices(changed, **after));
  if (!other.empty()) {
    note(flags.output, fmt::format("note: with {}, {}", fmt::join(flags.what_if, ", "), other));
  }
  return {};
}

// The scenario with the changes of --what-if; `whole`: without them, where there are any.
Result<Scenario> read_changed(const PredictFlags& flags, const DataFolders& folders,
                              std::optional<Scenario>& whole) {
  auto stated = scenario_from_flags(flags.scenario, folders);
  if (!stated || flags.what_if.empty()) return stated;
  auto scenario = apply_what_ifs(stated, flags.what_if, folders);
  if (!scenario) return scenario;
  if (lost_parts(flags).empty()) {
    Errors errors = note_choices(flags, *stated, *scenario, folders);
    if (!errors.empty()) return failure(std::move(errors));
  }
  whole = std::move(*stated);
  return scenario;
}

// Prices count for a whole run. A flag that changes nothing is a mistake.
Errors without_a_run(const PredictFlags& flags, const Scenario& scenario) {
  if (scenario.run && scenario.run->tokens) return {};
  const char* named = !flags.prices.empty() ? "--prices" : flags.scenario.spot ? "--spot" : nullptr;
  if (named == nullptr) {
    if (scenario.run && scenario.run->price_per_gpu_hour) {
      note(flags.output, "note: a price counts for a whole run (--tokens), and this is one step");
    }
    return {};
  }
  return {{ErrorCode::kIllegal, "counts for a whole run, and this is one step", "", named,
           "say how long it trains: --tokens, --examples or --epochs"}};
}

Errors plan_output(PredictFlags& flags, Output& output) {
  output.plan("-o", flags.output.file);
  output.plan("--trace", flags.trace);
  output.plan("--memory-timeline", flags.memory_timeline);
  output.plan("--html", flags.html);
  output.protect("SCENARIO", flags.scenario.file);
  output.protect("--prices", flags.prices);
  for (const auto& value : flags.scenario.values) output.protect("input", value->value);
  if (Errors errors = output.check(); !errors.empty()) return errors;
  return flags.require.read();
}

// The step without the changes of --what-if, replayed as the changed one is.
Result<Prediction> forecast_of_whole(const PredictFlags& flags,
                                     const std::optional<Scenario>& whole,
                                     const DataFolders& folders) {
  if (!whole) return Prediction{};
  PredictOptions options;
  options.fold = !flags.unfolded;
  options.contention = !flags.no_contention;
  return predict(*whole, folders, options);
}

// Tells what the changes do to the step.
void note_step(const PredictFlags& flags, const Prediction& before, const Prediction& after) {
  const std::string was = time_text(before.step_time), is = time_text(after.step_time);
  const char* nothing =
      ", which binds nothing here (--explain tells the link that binds a message)";
  note(flags.output,
       fmt::format("note: with {} a step takes {}, and {} without{}",
                   fmt::join(flags.what_if, ", "), is, was, was == is ? nothing : ""));
}

// Writes the files beside the forecast, and says so.
int commit(PredictFlags& flags, Output& output, const ForecastReport& report,
           const RunOutlook* outlook) {
  std::size_t trace_bytes = 0;
  if (!flags.trace.empty()) {
    Written trace = trace_json(report.scenario, report.prediction);
    trace_bytes = trace.text().size();
    output.set_file(flags.trace, std::move(trace));
  }
  if (!flags.memory_timeline.empty()) {
    output.set_file(flags.memory_timeline, flags.memory_timeline.ends_with(".json")
                                               ? memory_timeline_json(report.prediction)
                                               : memory_timeline_csv(report.prediction));
  }
  if (!flags.html.empty()) {
    output.set_file(flags.html,
                    prediction_html(report.scenario, report.prediction, outlook, report.recorded));
  }
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.memory_timeline);
  note_written(flags.output, flags.html);
  if (!flags.trace.empty()) tell_trace(flags, trace_bytes);
  return kOk;
}

int run_predict(PredictFlags& flags) {
  Output output;
  Errors errors = plan_output(flags, output);
  if (!errors.empty()) return report_errors(errors);
  auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  data->prices.own = flags.prices;
  std::optional<Scenario> whole;
  const auto scenario = read_changed(flags, data->folders, whole);
  if (!scenario) return report_errors(scenario.error());
  note_readings(flags.output, {&*scenario});
  if (errors = without_a_run(flags, *scenario); !errors.empty()) return report_errors(errors);
  const auto prediction = predict(*scenario, data->folders, options_of(flags));
  if (!prediction) return report_errors(prediction.error());

  const auto before = forecast_of_whole(flags, whole, data->folders);
  if (!before) return report_errors(before.error());
  const std::string lost = lost_parts(flags);
  if (whole && lost.empty()) note_step(flags, *before, *prediction);
  std::optional<Profile> profile;
  if (flags.explain) {
    auto loaded = choose_profile(*scenario, data->folders);
    if (!loaded) return report_errors(loaded.error());
    profile = std::move(*loaded);
  }
  const auto run = outlook_of(*scenario, *prediction, data->prices);
  if (!run) return report_errors(run.error());
  const RunOutlook* outlook = *run ? &**run : nullptr;
  if (outlook != nullptr) {
    const auto prices = load_prices(data->prices);
    if (!prices) return report_errors(prices.error());
    note_old_prices(flags.output, *prices, {&*scenario});
  }
  errors = flags.require.judge(*prediction, outlook);
  if (!errors.empty()) return report_errors(errors);
  const auto measured = MeasuredErrors::read(data->folders.profiles);
  if (!measured) return report_errors(measured.error());
  ForecastReport report{*scenario,
                        *prediction,
                        *run,
                        recorded_runs(*scenario, *measured),
                        profile ? &*profile : nullptr,
                        flags.pipeline,
                        flags.seed};
  if (!lost.empty()) report.loss.emplace(LossReport{lost, *whole, *before});
  output.set_main(flags.output, render(flags.output, report));
  if (const int code = commit(flags, output, report, outlook); code != kOk) return code;
  return flags.require.code(prediction->fits ? kOk : kDoesNotFit);
}

}  // namespace

Command add_predict(CommandLine program) {
  auto flags = std::make_shared<PredictFlags>();
  CommandLine app = program.add_command("predict", "forecast one step of one layout");
  app.footer(
      "Examples:\n"
      "  stepcast predict --model llama-3.1-70b --cluster dgx-h100x8 --global-batch 512 \\\n"
      "    --tp 8 --pp 4 --schedule interleaved --vpp 5\n"
      "  stepcast predict scenario.json --set layout.zero=1 --format json -o forecast.json\n"
      "  stepcast predict --model llama-3.1-8b --cluster pcie-4090-8 --gpus 1 --global-batch 16 "
      "\\\n"
      "    --seq 1024 --recompute full --framework native --set training.mode=qlora\n"
      "  stepcast predict scenario.json --tokens 2T --deadline 30d --budget 500k\n"
      "Exit code 3: the layout does not fit in memory (the forecast is still printed);\n"
      "6: --require is not kept.");
  add_scenario_flags(app, flags->scenario);
  add_run_flags(app, flags->scenario);
  add_prices_flag(app, flags->prices);
  add_output_flags(app, flags->output, {"table", "json", "csv", "md"});
  app.add("--trace", flags->trace, "write the replayed step as a Chrome trace").type_name("FILE");
  app.add("--memory-timeline", flags->memory_timeline,
          "write memory over time, as CSV, or as JSON when FILE ends in .json")
      .type_name("FILE");
  add_html_flag(app, flags->html);
  flags->require.add_to(app);
  app.add("--flops", flags->flops,
          "how attention counts in FLOPs, MFU and HFU: full, or causal for half of it")
      .one_of({name_of(FlopCount::kFull), name_of(FlopCount::kCausal)})
      .shows_default();
  app.add_switch("--pipeline", flags->pipeline,
                 "also draw the passes of each stage, in text and Markdown");
  app.add_switch("--explain", flags->explain,
                 "also print the resolved scenario, what each cost rests on, and the definitions");
  app.add_switch("--unfolded", flags->unfolded, "simulate every rank, not one of each class");
  app.add_switch(
      "--no-contention", flags->no_contention,
      "move every transfer as if alone on its links; the difference is what sharing costs");
  app.add("--what-if", flags->what_if,
          "change the speed of a resource, for example nic=+20%, or lose a part: fail=node3")
      .type_name("NAME=CHANGE")
      .one_word();
  // Flags that every forecasting verb takes, so that a script can pass them to each of them alike.
  app.add("--samples", flags->samples,
          "draw so many steps with jitter: 5th, 50th and 95th percentile, and who cost what")
      .within(0, 1'000'000);
  app.add("--seed", flags->seed, "seed of --samples, and of the run that --explain draws")
      .shows_default();
  app.add("--threads", flags->threads, "that draw samples; one forecast uses one thread")
      .within(0, 4096)
      .shows_default();
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_predict(*flags); }});
}

}  // namespace stepcast::cli
