// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plan_advise.h"
#include "cli/plan_batch.h"
#include "cli/plan_export.h"
#include "cli/plan_flags.h"
#include "cli/plan_offers.h"
#include "cli/plan_open.h"
#include "cli/plan_progress.h"
#include "cli/price_notes.h"
#include "cli/stated_scenario.h"
#include "cluster/cluster.h"
#include "cluster/named_cluster.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "launch/signal_watch.h"
#include "layout/read_scenario.h"
#include "plan/better_placement.h"
#include "plan/offers/layout_ranking.h"
#include "plan/space.h"
#include "predict/prediction.h"
#include "report/plan_report.h"
#include "report/why_not.h"

namespace stepcast::cli {
namespace {

// The cluster cut down to exactly `most` GPUs where it has more.
void limit_gpus(std::int64_t most, const Planner& planner, const DataFolders& folders,
                SortedJson& scenario) {
  if (planner.space().base().cluster.gpus() <= most) return;
  set_gpus(scenario["cluster"], most, folders.topologies);
}

Result<std::unique_ptr<Planner>> make_planner(const SortedJson& scenario, const PlanFlags& flags,
                                              const DataFolders& folders) {
  const auto document = JsonDocument::from(scenario, flags.scenario.file);
  auto planner = Planner::make(*document, folders);
  if (!planner) return failure(name_flags(planner.error(), flags.scenario));
  return planner;
}

std::vector<WhyNotQuestion> questions_of(const PlanFlags& flags, const SortedJson& scenario,
                                         const DataFolders& folders) {
  std::vector<WhyNotQuestion> out;
  for (const std::string& asked : flags.why_not) {
    SortedJson stated = scenario;
    lay_over(asked, "--why-not", stated);
    out.push_back({asked, make_planner(stated, flags, folders)});
  }
  return out;
}

// Keys that depend on those of the question change with them, until a layout is legal.
Result<WhyNot> answer_of(const WhyNotQuestion& question, SortedJson scenario,
                         const PlanFlags& flags, const DataFolders& folders,
                         const SearchOptions& options, const SearchResult& result) {
  WhyNot out = why_not(question, options, result);
  std::vector<std::string> changed;
  lay_over(question.asked, "--why-not", scenario);
  while (!out.rules.empty()) {
    const std::vector<std::string> opened = open_dependants(out.rules, question.asked, scenario);
    if (opened.empty()) return out;
    changed.insert(changed.end(), opened.begin(), opened.end());
    std::vector<WhyNotQuestion> next;
    next.push_back({question.asked, make_planner(scenario, flags, folders)});
    if (Errors slips = slips_of(next, "--why-not"); !slips.empty()) return failure(slips);
    out = why_not(next.front(), options, result);
    out.changed = changed;
  }
  return out;
}

Written render(const PlanReport& report, const std::string& format) {
  if (format == "json") return plan_json(report);
  if (format == "csv") return plan_csv(report);
  return format == "md" ? plan_markdown(report) : plan_table(report);
}

// The first place once more, with what pictures need.
Errors set_page(const PlanReport& report, const PlanFlags& flags, Output& output) {
  if (flags.html.empty()) return {};
  if (report.result.found.empty()) {
    output.set_file(flags.html, plan_html(report, nullptr));
    return {};
  }
  PredictOptions options;
  options.trace = true;
  const auto first = report.planner.predict(report.result.found.front().choice, options);
  if (!first) return first.error();
  output.set_file(flags.html, plan_html(report, &*first));
  return {};
}

bool has_one_layout(const Planner& planner) { return planner.space().combinations() <= 1; }

// Holds what is searched, and what is wrong with it so far.
struct Asked {
  SortedJson scenario;
  std::optional<SortedJson> today;  // the scenario before --open
  Errors errors;
};

// The scenario as the file states it, before --open; nothing without --open.
Result<std::optional<Scenario>> scenario_of_today(const std::optional<SortedJson>& stated,
                                                  const PlanFlags& flags,
                                                  const DataFolders& folders) {
  if (!stated) return std::optional<Scenario>();
  const auto document = JsonDocument::from(*stated, flags.scenario.file);
  auto scenario = read_scenario(*document, folders);
  if (!scenario) return failure(name_flags(scenario.error(), flags.scenario));
  return std::optional(std::move(*scenario));
}

// Its forecast.
Errors set_today(const std::optional<Scenario>& today, const PlanFlags& flags,
                 const DataFolders& folders, PlanReport& report) {
  if (!today) {
    if (has_one_layout(report.planner)) {
      note(flags.output,
           "note: every key of the layout is stated, so there is one; --open all searches them");
    }
    return {};
  }
  auto prediction = predict(*today, folders);
  if (!prediction) return prediction.error();
  report.today = TodaysLayout{std::move(*prediction), choice_text(*today)};
  return {};
}

// Holds the first place against recorded runs, and against the layout that the file states.
Errors set_comparisons(const std::optional<Scenario>& today, const PlanFlags& flags,
                       const DataFolders& folders, PlanReport& report) {
  auto recorded = recorded_runs_of_first(report.planner, report.result, folders.profiles);
  if (!recorded) return recorded.error();
  report.recorded = std::move(*recorded);
  return set_today(today, flags, folders, report);
}

// Says where the first place would be faster with its nodes in another order.
Errors note_placement(const PlanReport& report, const PlanFlags& flags,
                      const DataFolders& folders) {
  if (report.result.found.empty()) return {};
  const FoundLayout& first = report.result.found.front();
  const Seconds stated = first.prediction.step_time;
  const auto better = better_placement(report.planner, first.choice, stated, folders);
  if (!better) return better.error();
  if (!*better) return {};
  note(flags.output,
       fmt::format("note: with cluster.place={}, in the order of switches, the first place takes "
                   "{:.1f} ms in place of {:.1f}",
                   (*better)->place, (*better)->step_time.value() * 1e3, stated.value() * 1e3));
  return {};
}

// Whether the first place keeps what is required.
Errors judge_first(PlanFlags& flags, const PlanReport& report, const PriceList& prices) {
  if (!flags.require.given() || report.result.found.empty()) return {};
  const FoundLayout& first = report.result.found.front();
  std::optional<RunOutlook> run;
  if (report.planner.space().base().run) run = outlook_of(report.planner, prices, first);
  return flags.require.judge(first.prediction, run ? &*run : nullptr);
}

bool asks_for_money(const Scenario& base, Objective objective, const PlanFlags& flags) {
  return base.run || objective != Objective::kStepTime || !flags.prices.empty() ||
         !flags.prices_file.empty();
}

// The planner of a cluster, cut to the GPUs that may be used.
Result<std::unique_ptr<Planner>> planner_of(SortedJson& scenario, const PlanFlags& flags,
                                            const DataFolders& folders) {
  auto planner = make_planner(scenario, flags, folders);
  if (!planner) return planner;
  const std::int64_t most =
      flags.max_gpus > 0 ? flags.max_gpus : (*planner)->limits().max_gpus.value_or(kMaxGpus);
  if ((*planner)->space().base().cluster.gpus() <= most) return planner;
  limit_gpus(most, **planner, folders, scenario);
  return make_planner(scenario, flags, folders);
}

// The layouts of one cluster.
int plan_layouts(PlanFlags& flags, Asked asked, const DataRoot& data, Output& output) {
  auto& [scenario, stated_today, errors] = asked;
  const auto planner = planner_of(scenario, flags, data.folders);
  if (!planner) append(errors, planner.error());
  if (!errors.empty()) return report_errors(errors);
  const PlanInput limits = (*planner)->limits();
  const Scenario& base = (*planner)->space().base();
  note_readings(flags.output, {&base});
  const Objective objective = objective_of(flags, limits);
  const auto prices = prices_for({&base}, data.prices, data.folders.topologies, flags);
  if (!prices) return report_errors(prices.error());
  if (asks_for_money(base, objective, flags)) note_old_prices(flags.output, *prices, {&base});
  errors = of_file(flags.scenario.file, check_prices({&base}, objective, *prices));
  if (!errors.empty()) return report_errors(errors);
  const auto questions = questions_of(flags, scenario, data.folders);
  if (errors = slips_of(questions, "--why-not"); !errors.empty()) return report_errors(errors);
  const auto today = scenario_of_today(stated_today, flags, data.folders);
  if (!today) return report_errors(today.error());
  SearchOptions options = search_options(flags, limits);
  if (*today) options.start = &(*today)->layout;
  const SignalWatch signals;
  options.stop = [&] { return signals.count() > 0; };
  PlanProgress progress(flags.output, options.time_limit_s);
  share_time_limit(options);
  options.progress = [&](const SearchProgress& state) { progress.show(state); };
  if (flags.advise) {
    return run_advise({scenario, flags.scenario, flags.output, data, *prices, signals}, **planner,
                      options, progress, output);
  }
  auto result = search_by(objective, **planner, *prices, options);
  progress.clear();
  if (!result) return report_errors(result.error());
  if (result->interrupted) note_stopped(!result->found.empty(), flags.output);
  if (result->is_refused()) {
    return report_errors(name_flags(refusals(result->space), flags.scenario));
  }
  const auto export_note = prefer_exportable(**planner, scenario, data.folders, *result);
  if (!export_note) return report_errors(export_note.error());
  PlanReport report{**planner, *result, {}, static_cast<std::size_t>(options.top)};
  report.objective = objective;
  report.balanced = balance_stages(**planner, *result);
  report.export_note = export_note->missing;
  report.export_target = export_note->target;
  if (asks_for_money(base, objective, flags)) report.prices = &*prices;
  for (const WhyNotQuestion& question : questions) {
    auto answer = answer_of(question, scenario, flags, data.folders, options, *result);
    if (!answer) return report_errors(answer.error());
    report.why_not.push_back(std::move(*answer));
  }
  progress.clear();
  errors = set_comparisons(*today, flags, data.folders, report);
  if (errors.empty()) errors = note_placement(report, flags, data.folders);
  if (errors.empty()) errors = judge_first(flags, report, *prices);
  if (errors.empty()) errors = set_page(report, flags, output);
  if (!errors.empty()) return report_errors(errors);
  output.set_main(flags.output, render(report, flags.output.format));
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  return flags.require.code(code_of_search(!result->found.empty(), result->proven, signals));
}

Errors plan_output(const PlanFlags& flags, Output& output) {
  output.plan("-o", flags.output.file);
  output.plan("--html", flags.html);
  output.protect("SCENARIO", flags.scenario.file);
  output.protect("--prices", flags.prices_file);
  return output.check();
}

int run_plan(PlanFlags& flags) {
  Output output;
  if (const Errors errors = plan_output(flags, output); !errors.empty()) {
    return report_errors(errors);
  }
  if (const Errors bad = flags.require.read(); !bad.empty()) return report_errors(bad);
  if (flags.advise && flags.require.given()) {
    return report_errors({{ErrorCode::kIllegal, "an advice says itself what is enough", "",
                           "--require", "--deadline, --budget or --min-tokens-per-s"}});
  }
  auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  data->prices.own = flags.prices_file;
  const auto counts = take_gpu_counts(flags);
  if (!counts) return report_errors(counts.error());
  if (const Errors bad = take_prices(flags); !bad.empty()) return report_errors(bad);
  const auto stated = stated_text(flags.scenario, data->folders);
  if (!stated) return report_errors(stated.error());
  Errors errors = stated->errors;
  SortedJson scenario = SortedJson::parse(stated->text);
  if (const auto proposed = propose_batch(data->folders, scenario)) note(flags.output, *proposed);
  std::optional<SortedJson> today;
  if (!flags.open.empty()) {
    today = scenario;
    if (!stated->layout_of_file.empty()) {
      (*today)["layout"] = SortedJson::parse(stated->layout_of_file);
    }
    std::set<std::string> given;
    for (const auto& [path, value] : stated_by_flags(flags.scenario)) given.insert(path);
    append(errors, open_keys(flags.open, given, scenario));
  }
  for (Error& error : lay_fixed_over(flags, scenario)) errors.push_back(std::move(error));
  for (const std::string& text : flags.why_not) {
    SortedJson scratch = scenario;
    for (Error& error : lay_over(text, "--why-not", scratch)) errors.push_back(std::move(error));
  }
  if (asks_for_offers(*counts, flags, scenario)) {
    if (flags.advise) {
      errors.push_back({ErrorCode::kBadValue, "an advice is of one cluster and one number of GPUs",
                        flags.scenario.file, "--advise", "state one, or leave --advise out"});
    }
    if (!errors.empty()) return report_errors(errors);
    return plan_offers(flags, *counts, scenario, *data, output);
  }
  return plan_layouts(flags, {std::move(scenario), std::move(today), std::move(errors)}, *data,
                      output);
}

}  // namespace

Command add_plan(CommandLine program) {
  auto flags = std::make_shared<PlanFlags>();
  CommandLine app = program.add_command("plan", "search the layouts that a scenario leaves open");
  app.footer(
      "A layout key that the scenario or a flag states is fixed; every other one is searched.\n"
      "Examples:\n"
      "  stepcast plan --model llama-3.1-70b --cluster dgx-h100x8 --global-batch 512\n"
      "  stepcast plan scenario.json --fix tp=8 --prove --why-not tp=4,pp=8\n"
      "  stepcast plan --model llama-3.1-70b --global-batch 512 --clusters dgx-h100,dgx-a100-80g "
      "\\\n"
      "    --gpus 64..512 --tokens 2T --deadline 90d --objective cost\n"
      "  stepcast plan scenario.json --advise --tokens 2T --deadline 60d\n"
      "  stepcast plan --model llama-2-7b --cluster pcie-4090-8 --gpus 1 --global-batch 16 \\\n"
      "    --advise --set training.mode=lora\n"
      "Exit code 2: no layout is legal; 3: none fits in memory. A search that ends before it "
      "knows\n"
      "prints what it has and exits with 0. 6: the first place does not keep --require.");
  add_plan_flags(app, *flags);
  return within_memory_limit({app, [flags] { return run_plan(*flags); }});
}

}  // namespace stepcast::cli
