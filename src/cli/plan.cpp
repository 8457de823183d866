// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "advise/demands.h"
#include "cli/commands.h"
#include "cli/key_values.h"
#include "cli/output.h"
#include "cli/plan_advise.h"
#include "cli/plan_progress.h"
#include "cli/scenario_flags.h"
#include "cluster/named_cluster.h"
#include "launch/signal_watch.h"
#include "layout/override.h"
#include "report/plan_report.h"

namespace stepcast::cli {
namespace {

using nlohmann::json;

struct PlanFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::string data;
  std::vector<std::string> fixed, why_not;
  std::int64_t max_gpus = 0;
  double memory_margin = -1;  // negative: the scenario's
  SearchOptions search;
  int threads = 0;
  bool advise = false;
};

// "tp" is "layout.tp"; whole paths stay.
std::string layout_path(const std::string& key) {
  if (key.starts_with("layout.")) return key;
  return key == "vpp" ? "layout.virtual_stages" : "layout." + key;
}

// "tp=4,pp=8" laid over a scenario.
Errors lay_over(const std::string& text, const char* flag, json& scenario) {
  Errors errors;
  for (const std::string& one : split_values(text)) {
    const auto split = split_set(one);
    if (!split) {
      errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' has no value", one), "", flag,
                        "keys and values, as in tp=4,pp=8"});
      continue;
    }
    for (Error& error : apply_override(scenario, layout_path(split->first), split->second)) {
      errors.push_back(std::move(error));
    }
  }
  return errors;
}

// The cluster cut down to exactly `most` GPUs where it has more.
void limit_gpus(std::int64_t most, const Planner& planner, const DataFolders& folders,
                json& scenario) {
  if (planner.space().base().cluster.gpus() <= most) return;
  set_gpus(scenario["cluster"], most, folders.topologies);
}

Result<std::unique_ptr<Planner>> make_planner(const json& scenario, const PlanFlags& flags,
                                              const DataFolders& folders) {
  const auto document = JsonDocument::from(scenario, flags.scenario.file);
  auto planner = Planner::make(*document, folders);
  if (!planner) return failure(name_flags(planner.error(), flags.scenario));
  return planner;
}

WhyNot why_not(const std::string& asked, json scenario, const PlanFlags& flags,
               const SearchOptions& options, const SearchResult& all, const DataFolders& folders) {
  WhyNot out;
  out.asked = asked;
  lay_over(asked, "--why-not", scenario);
  const auto planner = make_planner(scenario, flags, folders);
  if (!planner) {
    out.rules = planner.error();
    for (Error& error : out.rules) error.file.clear();
    return out;
  }
  SearchOptions one = options;
  one.top = 1;
  one.front = 0;
  const auto result = (*planner)->search(one);
  if (!result) {
    out.rules = result.error();
    return out;
  }
  out.proven = result->proven;
  const auto words = [&](const LayoutChoice& choice) { return choice_text(**planner, choice); };
  if (!result->found.empty()) {
    out.best = result->found.front();
    out.layout = words(out.best->choice);
    if (!all.found.empty()) {
      out.reason = reason_against(**planner, *out.best, all.found.front().prediction);
    }
  } else if (result->smallest) {
    out.large = result->smallest;
    out.layout = words(out.large->choice);
  } else {
    for (const auto& [key, rule] : result->space.rules) out.rules.push_back(rule.example);
  }
  return out;
}

std::string render(const PlanReport& report, const std::string& format) {
  if (format == "json") return plan_json(report);
  if (format == "csv") return plan_csv(report);
  return format == "md" ? plan_markdown(report) : plan_table(report);
}

Errors check_limits(const PlanInput& limits, const json& scenario, const PlanFlags& flags) {
  Errors errors;
  const auto refuse = [&](const std::string& what, const char* path, const char* hint) {
    errors.push_back({ErrorCode::kNotSupported, what + " is not supported yet", flags.scenario.file,
                      path, hint});
  };
  if (limits.objective && *limits.objective != "step_time") {
    refuse(fmt::format("the objective {}", *limits.objective), "plan.objective", "use step_time");
  }
  const json stated = scenario.value("plan", json::object());
  if (stated.contains("clusters") && !stated["clusters"].empty()) {
    refuse("a search over several clusters", "plan.clusters",
           "one cluster at a time, as `cluster`");
  }
  return errors;
}

// Of a space without a layout: the rules that have refused all of it.
Errors why_empty(const SpaceCount& space, const PlanFlags& flags) {
  Errors refused;
  for (const auto& [key, rule] : space.rules) refused.push_back(rule.example);
  if (refused.empty()) {
    refused.push_back({ErrorCode::kBadValue, "the stated keys leave no layout to search",
                       flags.scenario.file, "layout", "state fewer of them"});
  }
  return refused;
}

SearchOptions search_options(const PlanFlags& flags, const PlanInput& limits) {
  SearchOptions options = flags.search;
  options.threads = threads_of(flags.threads);
  const double usual_margin = flags.advise ? kAdvisedMemoryMargin : 0;
  options.memory_margin =
      flags.memory_margin >= 0 ? flags.memory_margin : limits.memory_margin.value_or(usual_margin);
  return options;
}

int run_plan(const PlanFlags& flags) {
  Output output;
  output.plan("-o", flags.output.file);
  output.protect("SCENARIO", flags.scenario.file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  const auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  const auto stated = stated_text(flags.scenario, data->folders);
  if (!stated) return report_errors(stated.error());
  Errors errors = stated->errors;
  json scenario = json::parse(stated->text);
  for (const std::string& text : flags.fixed) {
    for (Error& error : lay_over(text, "--fix", scenario)) errors.push_back(std::move(error));
  }
  for (const std::string& text : flags.why_not) {
    json scratch = scenario;
    for (Error& error : lay_over(text, "--why-not", scratch)) errors.push_back(std::move(error));
  }
  auto planner = make_planner(scenario, flags, data->folders);
  if (!planner) errors.insert(errors.end(), planner.error().begin(), planner.error().end());
  if (!errors.empty()) return report_errors(errors);

  const PlanInput limits = (*planner)->limits();
  const std::int64_t most =
      flags.max_gpus > 0 ? flags.max_gpus : limits.max_gpus.value_or(kMaxGpus);
  if ((*planner)->space().base().cluster.gpus() > most) {
    limit_gpus(most, **planner, data->folders, scenario);
    planner = make_planner(scenario, flags, data->folders);
    if (!planner) return report_errors(planner.error());
  }
  if (Errors unknown = check_limits(limits, scenario, flags); !unknown.empty()) {
    return report_errors(unknown);
  }

  SearchOptions options = search_options(flags, limits);
  const SignalWatch signals;
  options.stop = [&] { return signals.count() > 0; };
  PlanProgress progress(flags.output, options.time_limit_s);
  options.progress = [&](const SearchProgress& state) { progress.show(state); };
  const AdviseRequest advice{scenario, flags.scenario, flags.output, *data};
  if (flags.advise) return run_advise(advice, **planner, options, progress, output);
  const auto result = (*planner)->search(options);
  progress.clear();
  if (!result) return report_errors(result.error());
  if (result->interrupted) note(flags.output, "stopped: the best found so far");

  if (result->bounded == 0 && !result->interrupted) {
    return report_errors(name_flags(why_empty(result->space, flags), flags.scenario));
  }

  PlanReport report{**planner, *result, {}, static_cast<std::size_t>(options.top)};
  for (const std::string& asked : flags.why_not) {
    report.why_not.push_back(why_not(asked, scenario, flags, options, *result, data->folders));
  }
  progress.clear();
  output.set_main(flags.output, render(report, flags.output.format));
  if (const int code = output.commit(); code != kOk) return code;
  return result->found.empty() ? kDoesNotFit : kOk;
}

}  // namespace

Command add_plan(CLI::App& program) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* app = program.add_subcommand("plan", "search the layouts that a scenario leaves open");
  app->allow_extras();
  app->footer(
      "A layout key that the scenario or a flag states is fixed, every other one is searched.\n"
      "Examples:\n"
      "  stepcast plan --model llama-3.1-70b --cluster dgx-h100x8 --global-batch 512\n"
      "  stepcast plan scenario.json --fix tp=8 --prove --why-not tp=4,pp=8\n"
      "  stepcast plan scenario.json --advise --tokens 2T --deadline 60d\n"
      "Exit code 2: no layout is legal. 3: nothing fits in memory.");
  add_scenario_flags(*app, flags->scenario);
  add_output_flags(*app, flags->output, {"table", "json", "csv", "md"});
  app->add_option("--fix", flags->fixed, "layout keys that are not searched, as tp=8,zero=1")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--why-not", flags->why_not, "why these are not the first place, as tp=4,pp=8")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--max-gpus", flags->max_gpus,
                  "of a larger cluster use exactly N GPUs; fewer are not searched")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kMaxGpus));
  app->add_option("--memory-margin", flags->memory_margin, "fraction of memory to leave free")
      ->type_name("FRACTION")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--top", flags->search.top, "places to fill")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  app->add_flag("--prove", flags->search.prove, "go on until all places are certain");
  app->add_option("--replays", flags->search.replays, "without --prove: layouts to replay at most")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--time-limit", flags->search.time_limit_s, "stop after so many seconds")
      ->type_name("S")
      ->check(CLI::Range(0.0, 1e9));
  app->add_option("--front", flags->search.front, "points of the front of time and memory, at most")
      ->type_name("N")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  add_run_flags(*app, flags->scenario);
  add_advise_flags(*app, flags->scenario, flags->advise);
  add_threads_flag(*app, flags->threads);
  add_data_flag(*app, flags->data);
  return {app, [flags] { return run_plan(*flags); }};
}

}  // namespace stepcast::cli
