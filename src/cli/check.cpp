// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "cli/baseline_file.h"
#include "cli/check_acceptance.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/scenario_flags.h"
#include "core/data_name.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/override.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "report/check_report.h"
#include "validate/collective_forecast.h"

namespace stepcast::cli {
namespace {

struct CheckFlags {
  std::vector<std::string> suites;
  std::vector<std::string> sets;
  std::vector<std::string> tags;
  std::vector<std::string> without_tags;
  std::vector<std::string> ids;  // parts of them
  std::vector<std::string> tolerances;
  std::vector<std::string> results;  // of thresholds
  std::string baseline;
  bool update = false;
  double slower = kUsualSlower;
  bool unfolded = false;
  bool publisher_left_out = false;
  int threads = 0;
  std::uint64_t seed = 0;
  CheckView view;
  std::string html;
  std::string markdown;
  std::string errors;  // by mechanism
  OutputOptions output;
  std::string data;
};

struct SuiteFile {
  std::string name;
  bool among_all = false;  // nobody named it
};

// A path, the name of a shipped suite, or "all" of these.
Result<std::vector<SuiteFile>> suite_files(const std::vector<std::string>& names,
                                           const std::string& folder) {
  const auto shipped = data_names(folder);
  if (!shipped) return failure(shipped.error());
  std::vector<SuiteFile> out;
  Errors errors;
  for (const std::string& name : names) {
    if (name == "all") {
      for (const std::string& one : *shipped) out.push_back({folder + "/" + one + ".json", true});
    } else if (auto file = suite_file(name, folder)) {
      out.push_back({std::move(*file)});
    } else {
      append(errors, file.error());
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

bool wanted(const SuiteCase& test_case, const CheckFlags& flags) {
  const auto has = [&](const std::string& tag) {
    return std::find(test_case.tags.begin(), test_case.tags.end(), tag) != test_case.tags.end();
  };
  const auto named = [&](const std::string& part) {
    return test_case.id.find(part) != std::string::npos;
  };
  if (!flags.ids.empty() && std::none_of(flags.ids.begin(), flags.ids.end(), named)) return false;
  return std::all_of(flags.tags.begin(), flags.tags.end(), has) &&
         std::none_of(flags.without_tags.begin(), flags.without_tags.end(), has);
}

Errors apply_sets(const std::vector<std::string>& sets, std::vector<Suite>& suites) {
  Errors errors;
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const std::string& set : sets) {
    if (auto split = split_set(set)) {
      overrides.push_back(std::move(*split));
    } else {
      append(errors, split.error());
    }
  }
  if (overrides.empty() || !errors.empty()) return errors;
  for (Suite& suite : suites) {
    for (SuiteCase& test_case : suite.cases) {
      SortedJson& scenario = test_case.scenario;
      for (const auto& [path, value] : overrides) {
        if (Errors failed = apply_override(scenario, path, value); !failed.empty()) return failed;
      }
    }
  }
  return errors;
}

// A gate that checks no case would always be open.
Errors nothing_selected(const CheckFlags& flags, const std::vector<Suite>& suites) {
  const auto some = [](const Suite& suite) { return !suite.cases.empty(); };
  if (std::any_of(suites.begin(), suites.end(), some)) return {};
  const char* flag = !flags.ids.empty() ? "--case" : !flags.tags.empty() ? "--tag" : "SUITE";
  return {{ErrorCode::kNotFound, "no case is left to predict", "", flag,
           "--format csv without it lists the cases and their tags"}};
}

// A tag that no case has would be left out in silence: the gate then checks what it should not.
Errors unknown_tags(const CheckFlags& flags, const std::set<std::string>& known) {
  Errors errors;
  for (const auto& [flag, tags] :
       {std::pair("--tag", &flags.tags), std::pair("--without-tag", &flags.without_tags)}) {
    for (const std::string& tag : *tags) {
      if (known.contains(tag)) continue;
      const std::string near = did_you_mean(tag, {known.begin(), known.end()});
      errors.push_back({ErrorCode::kNotFound, fmt::format("no case has the tag '{}'", tag), "",
                        flag, near.empty() ? "--format csv lists the cases and their tags" : near});
    }
  }
  return errors;
}

// "all" is of training runs: times of collectives would be most of its cases, and of another kind.
bool is_of_collectives(const Suite& suite) {
  return std::ranges::all_of(suite.cases,
                             [](const SuiteCase& one) { return one.collective.ranks > 0; });
}

struct Selection {
  std::vector<Suite> suites;       // with the cases that the flags leave
  std::set<std::string> left_out;  // baseline keys of the others
};

Result<Selection> load_suites(const CheckFlags& flags, const std::string& folder) {
  if (!flags.results.empty()) {
    return failure({ErrorCode::kIllegal, "goes with a file of thresholds, not with suites", "",
                    "--results", "stepcast export --to acceptance makes one"});
  }
  const auto files = suite_files(flags.suites, folder);
  if (!files) return failure(files.error());
  Selection out;
  std::vector<Suite>& suites = out.suites;
  std::set<std::string> tags;
  Errors errors;
  for (const auto& [file, among_all] : *files) {
    auto suite = load_suite(file);
    if (!suite) {
      append(errors, suite.error());
      continue;
    }
    if (among_all && is_of_collectives(*suite)) continue;
    const bool twice = std::any_of(suites.begin(), suites.end(),
                                   [&](const Suite& other) { return other.name == suite->name; });
    if (twice) {
      errors.push_back({ErrorCode::kIllegal,
                        fmt::format("a suite named '{}' is already given", suite->name), file,
                        "name", "give each suite once"});
    }
    std::erase_if(suite->cases, [&](const SuiteCase& one) {
      tags.insert(one.tags.begin(), one.tags.end());
      if (wanted(one, flags)) return false;
      out.left_out.insert(baseline_key(suite->name, one.id));
      return true;
    });
    suites.push_back(std::move(*suite));
  }
  append(errors, apply_sets(flags.sets, suites));
  if (errors.empty()) append(errors, unknown_tags(flags, tags));
  if (errors.empty()) append(errors, nothing_selected(flags, suites));
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

// Keys of --set that no scenario has. A value that a single case refuses is reported with that
// case.
Errors unknown_keys(const CheckFlags& flags, const std::vector<Suite>& suites,
                    const DataFolders& folders) {
  if (flags.sets.empty()) return {};
  const auto first = std::find_if(suites.begin(), suites.end(),
                                  [](const Suite& suite) { return !suite.cases.empty(); });
  const SuiteCase& one = first->cases.front();
  const auto document = JsonDocument::from(one.scenario, "--set");
  Errors out;
  if (one.collective.ranks > 0) {
    const auto cluster = read_collective_scenario(*document, folders);
    if (!cluster) out = cluster.error();
  } else {
    const auto scenario = read_scenario(*document, folders);
    if (!scenario) out = scenario.error();
  }
  std::erase_if(out, [](const Error& error) { return error.code != ErrorCode::kUnknownKey; });
  return out;
}

// The baseline to compare with; nothing when there is none.
Result<std::optional<Baseline>> recorded_baseline(const CheckFlags& flags,
                                                  const std::vector<Suite>& suites) {
  if (flags.baseline.empty()) return std::optional<Baseline>();
  const auto text = read_baseline_file(flags.baseline, flags.update);
  if (!text) return failure(text.error());
  if (!*text) return std::optional<Baseline>();
  std::vector<std::string> names;
  for (const Suite& suite : suites) {
    if (!suite.cases.empty()) names.push_back(suite.name);
  }
  std::ranges::sort(names);
  auto baseline = read_baseline(**text, flags.baseline, names);
  if (!baseline) return failure(baseline.error());
  return std::optional(std::move(*baseline));
}

// A new baseline of some cases would drop what the old one knows of the others.
Errors dropped_cases(const CheckFlags& flags, const std::optional<Baseline>& baseline,
                     const std::set<std::string>& left_out) {
  if (!flags.update || !baseline || left_out.empty()) return {};
  std::vector<std::string> dropped;
  for (const auto& [key, unused] : baseline->cases) {
    if (left_out.contains(key)) dropped.push_back(key);
  }
  if (dropped.empty()) return {};
  return {{ErrorCode::kIllegal,
           fmt::format("would drop {} recorded case{} that --case, --tag or --without-tag leave{} "
                       "out, as {}",
                       dropped.size(), dropped.size() == 1 ? "" : "s",
                       dropped.size() == 1 ? "s" : "", dropped.front()),
           flags.baseline, "--update", "update with all of them, or name another baseline"}};
}

// Rows that no case is in, found before minutes are spent on forecasts.
Errors unknown_rows(const std::vector<Tolerance>& tolerances, const std::vector<Suite>& suites) {
  std::vector<CaseResult> cases;
  for (const Suite& suite : suites) {
    for (const SuiteCase& test_case : suite.cases) {
      CaseResult& one = cases.emplace_back();
      one.suite = suite.name;
      one.id = test_case.id;
      one.tags = test_case.tags;
      one.failed = "not predicted yet";
    }
  }
  // Profiles tell only with the forecasts which cases they were fitted on.
  cases.push_back(cases.front());
  cases.back().fitted = true;
  const auto findings = apply_tolerances(summarise(cases), tolerances);
  return findings ? Errors{} : findings.error();
}

Written render(const CheckFlags& flags, const CheckReport& report, const GateOutcome& gate) {
  const std::string& format = flags.output.format;
  if (format == "json") return check_json(report, gate);
  if (format == "csv") return check_csv(report);
  if (format == "md") return check_markdown(report, gate, flags.view);
  if (format == "junit") return check_junit(report, gate);
  if (format == "github") return check_github(report, gate);
  return check_table(report, gate, flags.view);
}

CheckOptions options_of(const CheckFlags& flags) {
  CheckOptions options;
  options.fold = !flags.unfolded;
  options.publisher_left_out = flags.publisher_left_out;
  options.threads = threads_of(flags.threads);
  if (!flags.output.quiet && isatty(STDERR_FILENO) == 1) {
    const auto mutex = std::make_shared<std::mutex>();
    options.progress = [mutex](std::size_t done, std::size_t all) {
      const std::scoped_lock lock(*mutex);
      tell_progress(fmt::format("{} of {} cases", done, all));
      if (done == all) tell("\n");
    };
  }
  return options;
}

Errors plan_output(const CheckFlags& flags, Output& output) {
  output.plan("-o", flags.output.file);
  output.plan("--html", flags.html);
  output.plan("--md", flags.markdown);
  output.plan("--errors", flags.errors);
  if (flags.update) output.plan("--baseline", flags.baseline);
  if (!flags.update) output.protect("--baseline", flags.baseline);
  for (const std::string& suite : flags.suites) output.protect("SUITE", suite);
  for (const std::string& file : flags.results) output.protect("--results", file);
  return output.check();
}

int run_check(const CheckFlags& flags) {
  Output output;
  Errors errors = plan_output(flags, output);
  const auto tolerances = parse_tolerances(flags.tolerances);
  if (!tolerances) append(errors, tolerances.error());
  if (flags.update && flags.baseline.empty()) {
    errors.push_back({ErrorCode::kMissingKey, "names no file to update", "", "--update",
                      "give --baseline FILE"});
  }
  const auto data = find_data(flags.data);
  if (!data) append(errors, data.error());
  if (!errors.empty()) return report_errors(errors);
  if (is_acceptance(flags.suites)) {
    return check_acceptance({flags.suites.front(), flags.results, flags.markdown, flags.output},
                            data->folders, output);
  }
  const auto selection = load_suites(flags, data->suites);
  if (!selection) return report_errors(selection.error());
  const std::vector<Suite>& suites = selection->suites;
  const auto baseline = recorded_baseline(flags, suites);
  if (!baseline) return report_errors(baseline.error());
  errors = unknown_rows(*tolerances, suites);
  append(errors, dropped_cases(flags, *baseline, selection->left_out));
  if (!errors.empty()) return report_errors(errors);

  if (const Errors unknown = unknown_keys(flags, suites, data->folders); !unknown.empty()) {
    return report_errors(unknown);
  }
  const CheckReport report = check(suites, data->folders, options_of(flags));
  if (!report.refused.empty()) return report_errors(report.refused);
  const auto gate = judge(report, *tolerances, *baseline ? &**baseline : nullptr,
                          {flags.baseline, flags.update, flags.slower});
  if (!gate) return report_errors(gate.error());
  output.set_main(flags.output, render(flags, report, *gate));
  if (!flags.html.empty()) output.set_file(flags.html, check_html(report, *gate));
  if (!flags.markdown.empty()) {
    output.set_file(flags.markdown, check_markdown(report, *gate, flags.view));
  }
  if (!flags.errors.empty()) {
    output.set_file(flags.errors, Written::escaped(errors_by_mechanism(report.cases).text()));
  }
  // Figures that break a limit must not become the new baseline.
  const bool updates = flags.update && gate->broken.empty();
  if (updates) output.set_file(flags.baseline, baseline_text(report));
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  for (const Finding& finding : gate->broken) {
    note(flags.output, fmt::format("broken: {}: {}", finding.title, finding.message));
  }
  if (flags.update) {
    note(flags.output, updates ? "wrote " + flags.baseline : flags.baseline + " is left as it was");
  }
  return gate->broken.empty() ? kOk : kRegression;
}

}  // namespace

Command add_check(CommandLine program) {
  auto flags = std::make_shared<CheckFlags>();
  CommandLine app =
      program.add_command("check", "predict recorded runs and compare; the gate for CI");
  app.footer(
      "Examples:\n"
      "  stepcast check megatron-a100 llm-foundry --tolerance step_time.mean_abs_error=0.10\n"
      "  stepcast check all --without-tag fp8 --tolerance megatron-a100:step_time.bias=0.05\n"
      "  stepcast check runs.json --baseline baseline.json --format github --md summary.md\n"
      "  stepcast check acceptance.json --results nccl.txt --results run.log\n"
      "Exit code 4: a limit, also of the suite on a case, is not kept, or a figure is worse than "
      "in "
      "the baseline.");
  app.add("SUITE", flags->suites, "suite files, names of shipped suites, or all (of training runs)")
      .required();
  const auto repeatable = [&](const char* name, std::vector<std::string>& values, const char* type,
                              const char* help) {
    app.add(name, values, help).type_name(type).one_word();
  };
  repeatable("--tolerance", flags->tolerances, "[SUITE|TAG:]FIGURE=LIMIT",
             "fail when a figure of the summary is beyond its limit");
  repeatable("--results", flags->results, "FILE",
             "what nccl-tests printed, or a training log, where SUITE is a file of thresholds");
  app.add("--baseline", flags->baseline, "fail when a figure is worse than in this file")
      .type_name("FILE");
  app.add_switch("--update", flags->update, "write the baseline anew, unless a limit is not kept");
  app.add("--slower", flags->slower,
          "how much slower than the run before a step may be, beyond what its spread explains")
      .within(0.0, 10.0)
      .shows_default();
  repeatable("--tag", flags->tags, "TAG", "only cases with this tag");
  repeatable("--without-tag", flags->without_tags, "TAG", "only cases without this tag");
  repeatable("--case", flags->ids, "TEXT",
             "only cases whose id contains this text or that of another --case");
  repeatable("--set", flags->sets, "PATH=VALUE",
             "set a scenario key in every case, for example profile=none");
  add_output_flags(app, flags->output, {"table", "json", "csv", "md", "junit", "github"});
  add_html_flag(app, flags->html);
  add_markdown_flag(app, flags->markdown);
  app.add("--errors", flags->errors,
          "also write the errors of each mechanism, from which intervals are made")
      .type_name("FILE");
  app.add_switch("--by-tag", flags->view.tags, "in table and md: add a row per tag");
  app.add_switch("--summary", flags->view.summary_only, "in table and md: print the summary alone");
  app.add("--worst", flags->view.worst,
          "in table and md: list the N largest errors of each suite, not the ten largest of all")
      .type_name("N");
  app.add_switch("--publisher-left-out", flags->publisher_left_out,
                 "make the interval of each run without the errors of its publisher's runs");
  app.add_switch("--unfolded", flags->unfolded, "simulate every rank, not one of each class");
  add_threads_flag(app, flags->threads);
  app.add("--seed", flags->seed,
          "accepted, as by every command that forecasts; nothing here is random")
      .shows_default();
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_check(*flags); }});
}

}  // namespace stepcast::cli
