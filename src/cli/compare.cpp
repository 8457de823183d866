// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "cli/ablation.h"
#include "cli/commands.h"
#include "cli/key_values.h"
#include "cli/output.h"
#include "cli/require.h"
#include "cli/scenario_flags.h"
#include "cli/stated_scenario.h"
#include "core/gathered_errors.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/machine_errors.h"
#include "core/parallel.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "plan/layout_dimension.h"
#include "plan/offers/layout_ranking.h"
#include "plan/what_if.h"
#include "report/compare_report.h"
#include "report/key_difference.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kMostPoints = 4096;
// The axis of what is turned off; no scenario has such a key.
constexpr const char* kWithout = "without";
constexpr const char* kNothing = "nothing";

struct CompareFlags {
  ScenarioFlags scenario;
  OutputOptions output;
  std::vector<std::string> files;  // of scenarios, side by side
  std::string data;
  std::string html;
  std::string prices;
  std::vector<std::string> vary, what_if;
  bool pipeline = false;
  bool ablate = false;
  double tornado = 0;  // percent
  std::string scaling;
  int threads = 0;
  Require require;
};

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// Files that differ in nothing but their keys are compared, so each has to be a document.
Errors read_files(const std::vector<std::string>& files, std::vector<Axis>& out) {
  Errors errors;
  for (const std::string& file : files) {
    if (const auto document = JsonDocument::load(file); !document) append(errors, document.error());
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (std::find(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(i), files[i]) ==
        files.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' stands there twice", files[i]), "",
                      "SCENARIO", "name each file once"});
  }
  out.push_back({kFilesKey, files});
  return errors;
}

Errors read_axes(const std::vector<std::string>& texts, std::vector<Axis>& out) {
  Errors errors;
  std::size_t points = 1;
  for (const Axis& axis : out) points *= axis.values.size();
  for (const std::string& text : texts) {
    const auto split = split_set(text);
    if (!split || split->second.empty()) {
      errors.push_back({ErrorCode::kBadValue, fmt::format("'{}' has no values", text), "", "--vary",
                        "path=value,value, as in layout.zero=0,1"});
      continue;
    }
    out.push_back({split->first, split_values(split->second)});
    points *= out.back().values.size();
    if (points > kMostPoints) {
      errors.push_back({ErrorCode::kBadValue,
                        fmt::format("the grid has more than {} points", kMostPoints), "", "--vary",
                        "plan searches larger spaces"});
      break;
    }
  }
  return errors;
}

void note_replaced_flags(const CompareFlags& flags, const std::vector<Axis>& axes) {
  for (const auto& value : flags.scenario.values) {
    const bool varied = std::any_of(axes.begin(), axes.end(),
                                    [&](const Axis& axis) { return axis.key == value->path; });
    if (!varied || !value->option.given()) continue;
    note(flags.output, fmt::format("note: {} {} has no effect beside --vary {}", value->flag,
                                   value->value, value->path));
  }
}

Errors name_varied(Errors errors, const std::vector<Axis>& axes) {
  for (Error& error : errors) {
    for (const Axis& axis : axes) {
      if (error.path == axis.key) error.path = "--vary " + axis.key;
    }
  }
  return errors;
}

// The values of the i-th point; the last axis varies fastest.
std::vector<std::string> values_at(const std::vector<Axis>& axes, std::size_t index) {
  std::vector<std::string> out(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    out[a] = axes[a].values[index % axes[a].values.size()];
    index /= axes[a].values.size();
  }
  return out;
}

struct PointFlags {
  std::string file;
  std::vector<std::string> sets;  // "path=value"
};

// While this lives, the flags stand for one point of the grid.
class AtPoint {
 public:
  AtPoint(ScenarioFlags& flags, const PointFlags& point) : flags_(flags) {
    flags_.file = point.file;
    flags_.varied = point.sets;
  }
  AtPoint(const AtPoint&) = delete;
  AtPoint& operator=(const AtPoint&) = delete;
  ~AtPoint() { flags_.varied.clear(); }

 private:
  ScenarioFlags& flags_;
};

class Comparison {
 public:
  Comparison(CompareFlags& flags, const DataFolders& folders) : flags_(flags), folders_(folders) {}

  // An axis of the optimisations of the scenario, each turned off, behind the scenario as it is.
  Result<Axis> optimisations();
  Errors run(const std::vector<Axis>& axes, const std::vector<WhatIf>& changes);
  const CompareReport& report() const { return report_; }

 private:
  void read(const std::vector<Axis>& axes, const std::vector<WhatIf>& changes);
  void find_differences();
  Errors find_sensitivity();
  Errors draw_pipelines();
  void predict_all(std::vector<ComparedPoint>& points) const {
    run_in_parallel(threads_of(flags_.threads), points.size(), [&](std::size_t, std::size_t i) {
      if (!points[i].scenario) return;
      auto prediction = predict(*points[i].scenario, folders_);
      if (prediction) {
        points[i].prediction = std::move(*prediction);
      } else {
        points[i].errors = prediction.error();
      }
    });
  }
  // Errors of the machine, which no point is to blame for: a grid without it would be another one.
  Errors refused_points() const {
    Errors out;
    for (const auto* points : {&report_.points, &unchanged_}) {
      for (const ComparedPoint& point : *points) {
        add_new(refused_by_machine(point.errors), out);
      }
    }
    return out;
  }
  Result<Scenario> scenario_of(const PointFlags& point);
  SortedJson stated(const PointFlags& point);

  CompareFlags& flags_;
  const DataFolders& folders_;
  CompareReport report_;
  std::vector<Ablation> ablations_;
  std::vector<ComparedPoint> unchanged_;  // by point: without what-ifs, where there are any
};

// The flags' own scenario with more keys set.
Result<Scenario> Comparison::scenario_of(const PointFlags& point) {
  const AtPoint at(flags_.scenario, point);
  return scenario_from_flags(flags_.scenario, folders_);
}

Result<Axis> Comparison::optimisations() {
  const std::string file = flags_.files.empty() ? "" : flags_.files.front();
  const auto base = scenario_of({file, {}});
  if (!base) return failure(base.error());
  ablations_ = ablations_of(*base, [&](const std::vector<std::string>& sets) {
    return scenario_of({file, sets});
  });
  Axis out{kWithout, {kNothing}};
  for (const Ablation& one : ablations_) out.values.push_back(one.name);
  return out;
}

// The layout that these flags state, legal or not.
SortedJson Comparison::stated(const PointFlags& point) {
  const AtPoint at(flags_.scenario, point);
  const auto text = stated_text(flags_.scenario, folders_);
  SortedJson scenario = text ? SortedJson::parse(text->text) : SortedJson();
  return scenario.is_object() ? std::move(scenario) : SortedJson::object();
}

// Compares the files as the flags leave them, without what is varied.
void Comparison::find_differences() {
  std::vector<SortedJson> scenarios;
  std::vector<ComparedDocument> documents;
  scenarios.reserve(flags_.files.size());
  for (const std::string& file : flags_.files) {
    const auto scenario = scenario_of({file, {}});
    scenarios.push_back(scenario ? to_json(*scenario) : stated({file, {}}));
    documents.push_back({scenarios.back(), scenario.has_value()});
  }
  report_.differences = key_differences(documents);
}

Error no_whole_batch(std::int64_t batch, std::int64_t gpus_of_first, std::int64_t gpus) {
  return {ErrorCode::kIllegal,
          fmt::format("{} on {} GPUs is no whole number of sequences on {}", batch, gpus_of_first,
                      gpus),
          "", "training.global_batch",
          fmt::format("a first batch that is a multiple of {}",
                      gpus_of_first / std::gcd(gpus_of_first, gpus))};
}

void Comparison::read(const std::vector<Axis>& axes, const std::vector<WhatIf>& changes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    report_.keys.push_back(axis.key);
    count *= axis.values.size();
  }
  std::int64_t gpus_of_first = 0, batch_of_first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ComparedPoint& point = report_.points.emplace_back();
    point.values = values_at(axes, i);
    PointFlags at{flags_.files.empty() ? "" : flags_.files.front(), {}};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].key == kFilesKey) {
        at.file = point.values[a];
      } else if (axes[a].key == kWithout) {
        const auto one = std::ranges::find(ablations_, point.values[a], &Ablation::name);
        if (one != ablations_.end()) at.sets = one->sets;
      } else {
        at.sets.push_back(axes[a].key + "=" + point.values[a]);
      }
    }
    auto scenario = scenario_of(at);
    if (scenario && flags_.scaling == "weak") {
      const std::int64_t gpus = scenario->cluster.gpus();
      if (gpus_of_first == 0) {
        gpus_of_first = gpus;
        batch_of_first = scenario->training.global_batch;
      }
      if (batch_of_first * gpus % gpus_of_first == 0) {
        at.sets.push_back(
            fmt::format("training.global_batch={}", batch_of_first * gpus / gpus_of_first));
        scenario = scenario_of(at);
      } else {
        scenario = failure(no_whole_batch(batch_of_first, gpus_of_first, gpus));
      }
    }
    ComparedPoint& unchanged = unchanged_.emplace_back();
    if (scenario && !changes.empty()) unchanged.scenario = *scenario;
    for (const WhatIf& change : changes) {
      if (scenario) scenario = apply_what_if(*scenario, change);
    }
    if (scenario) {
      point.scenario = std::move(*scenario);
    } else {
      point.errors = scenario.error();
      point.stated_layout = json_text(stated(at).value("layout", SortedJson::object()));
    }
  }
}

// The best point again with each resource slower and faster.
Errors Comparison::find_sensitivity() {
  report_.change = flags_.tornado / 100;
  const ComparedPoint& best = report_.points[ranked(report_).front()];
  std::vector<ComparedPoint> points;
  for (const ClusterResource& resource : cluster_resources()) {
    if (!resource.is_there(best.scenario->cluster.spec)) continue;
    for (const double change : {-report_.change, report_.change}) {
      auto changed = apply_what_if(*best.scenario, {&resource, 1 + change});
      if (!changed) return changed.error();
      points.push_back({{resource.name, resource.title}, std::move(*changed), {}, {}});
    }
  }
  predict_all(points);
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    for (const ComparedPoint* point : {&points[i], &points[i + 1]}) {
      if (!point->prediction) return point->errors;
    }
    report_.sensitivity.push_back({points[i].values[0], points[i].values[1],
                                   points[i].prediction->step_time,
                                   points[i + 1].prediction->step_time});
  }
  std::stable_sort(report_.sensitivity.begin(), report_.sensitivity.end(),
                   [](const Sensitivity& a, const Sensitivity& b) {
                     return a.slower - a.faster > b.slower - b.faster;
                   });
  return {};
}

Errors Comparison::run(const std::vector<Axis>& axes, const std::vector<WhatIf>& changes) {
  if (!flags_.scaling.empty()) {
    report_.scaling = flags_.scaling == "weak" ? Scaling::kWeak : Scaling::kStrong;
  }
  report_.what_if = flags_.what_if;
  if (flags_.files.size() > 1) find_differences();
  read(axes, changes);
  predict_all(report_.points);
  predict_all(unchanged_);
  if (Errors refused = refused_points(); !refused.empty()) return refused;
  for (std::size_t i = 0; i < unchanged_.size(); ++i) {
    if (report_.points[i].prediction) {
      report_.points[i].unchanged = std::move(unchanged_[i].prediction);
    }
  }
  const bool any = std::any_of(report_.points.begin(), report_.points.end(),
                               [](const ComparedPoint& point) { return point.prediction; });
  if (!any) return name_varied(report_.points.front().errors, axes);
  if (flags_.pipeline || !flags_.html.empty()) {
    if (Errors errors = draw_pipelines(); !errors.empty()) return errors;
  }
  return flags_.tornado > 0 ? find_sensitivity() : Errors{};
}

// Forecasts the points that are drawn once more, with the slices of their passes.
Errors Comparison::draw_pipelines() {
  report_.pipelines = flags_.pipeline;
  PredictOptions options;
  options.trace = true;
  for (const std::size_t index : drawn_beside(report_)) {
    ComparedPoint& point = report_.points[index];
    auto prediction = predict(*point.scenario, folders_, options);
    if (!prediction) return prediction.error();
    point.prediction = std::move(*prediction);
  }
  return {};
}

Written render(const CompareReport& report, const std::string& format) {
  if (format == "json") return compare_json(report);
  if (format == "csv") return compare_csv(report);
  return format == "md" ? compare_markdown(report) : compare_table(report);
}

// Reads the axes of the grid, and the changes that all its points have.
Errors read_asked(const CompareFlags& flags, std::vector<Axis>& axes,
                  std::vector<WhatIf>& changes) {
  Errors errors;
  if (flags.files.size() > 1) errors = read_files(flags.files, axes);
  append(errors, read_axes(flags.vary, axes));
  for (const std::string& text : flags.what_if) {
    const auto change = parse_what_if(text);
    if (change) {
      changes.push_back(*change);
    } else {
      append(errors, change.error());
    }
  }
  const bool batches = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) {
    return axis.key == "training.global_batch" || axis.key == "training";
  });
  if (flags.scaling == "weak" && batches) {
    errors.push_back({ErrorCode::kIllegal, "weak sets the batch of every point by its GPUs", "",
                      "--scaling",
                      "leave training.global_batch out of --vary, or --scaling strong"});
  }
  if (flags.ablate && (!axes.empty() || !flags.scaling.empty())) {
    errors.push_back({ErrorCode::kIllegal, "turns off what one scenario has", "", "--ablate",
                      "one file, without --vary and --scaling"});
  }
  if (axes.empty() && !flags.ablate && flags.tornado <= 0 && errors.empty()) {
    errors.push_back({ErrorCode::kMissingKey, "nothing to compare", "", "--vary",
                      "path=value,value, as in layout.zero=0,1; or several scenario files; or "
                      "--tornado; predict is of one scenario, also with --what-if"});
  }
  return errors;
}

int run_compare(CompareFlags& flags) {
  Output output;
  output.plan("-o", flags.output.file);
  output.plan("--html", flags.html);
  for (const std::string& file : flags.files) output.protect("SCENARIO", file);
  if (const Errors errors = output.check(); !errors.empty()) return report_errors(errors);
  if (const Errors bad = flags.require.read(); !bad.empty()) return report_errors(bad);
  auto data = find_data(flags.data);
  if (!data) return report_errors(data.error());
  data->prices.own = flags.prices;
  std::vector<Axis> axes;
  std::vector<WhatIf> changes;
  Errors errors = read_asked(flags, axes, changes);
  if (!errors.empty()) return report_errors(errors);
  note_replaced_flags(flags, axes);
  Comparison comparison(flags, data->folders);
  if (flags.ablate) {
    auto axis = comparison.optimisations();
    if (!axis) return report_errors(axis.error());
    axes.push_back(std::move(*axis));
  }
  if (errors = comparison.run(axes, changes); !errors.empty()) return report_errors(errors);
  std::vector<const Scenario*> scenarios;
  for (const ComparedPoint& point : comparison.report().points) {
    if (point.scenario) scenarios.push_back(&*point.scenario);
  }
  note_readings(flags.output, scenarios);
  const CompareReport& report = comparison.report();
  const ComparedPoint& best = report.points[ranked(report).front()];
  if (flags.require.given()) {
    const auto run = outlook_of(*best.scenario, *best.prediction, data->prices);
    if (!run) return report_errors(run.error());
    errors = flags.require.judge(*best.prediction, *run ? &**run : nullptr);
    if (!errors.empty()) return report_errors(errors);
  }
  output.set_main(flags.output, render(comparison.report(), flags.output.format));
  if (!flags.html.empty()) output.set_file(flags.html, compare_html(comparison.report()));
  if (const int code = output.commit(); code != kOk) return code;
  note_written(flags.output, flags.html);
  return flags.require.code(best.prediction->fits ? kOk : kDoesNotFit);
}

}  // namespace

Command add_compare(CommandLine program) {
  auto flags = std::make_shared<CompareFlags>();
  CommandLine app =
      program.add_command("compare", "forecast scenarios, or a grid of them, side by side");
  app.footer(
      "Examples:\n"
      "  stepcast compare scenario.json --vary layout.zero=0,1 --vary layout.micro_batch=1,2,4\n"
      "  stepcast compare scenario.json --vary cluster.nodes=2,4,8,16 --scaling weak\n"
      "  stepcast compare scenario.json --tornado 20\n"
      "  stepcast compare scenario.json --ablate\n"
      "  stepcast compare today.json proposed.json\n"
      "Exit code 3: no point of the grid fits in memory; 6: the best does not keep --require.");
  app.add("SCENARIO", flags->files,
          "scenario files (JSON), several are set side by side; flags override them");
  add_scenario_values(app, flags->scenario);
  add_prices_flag(app, flags->prices);
  add_output_flags(app, flags->output, {"table", "json", "csv", "md"});
  add_html_flag(app, flags->html);
  flags->require.add_to(app);
  app.add_switch("--pipeline", flags->pipeline,
                 "also draw the passes of the first two with a pipeline, in text and Markdown");
  app.add("--vary", flags->vary,
          "vary a scenario key over these values; repeated flags span a grid")
      .type_name("PATH=VALUE,...")
      .one_word();
  app.add("--what-if", flags->what_if,
          "change the speed of a resource in all forecasts, for example nic=+20%")
      .type_name("NAME=CHANGE")
      .one_word();
  app.add_switch("--ablate", flags->ablate,
                 "turn each optimisation of the scenario off, with what depends on it");
  app.add("--tornado", flags->tornado,
          "forecast the best point with each resource this many percent slower and faster")
      .type_name("PERCENT")
      .within(0.1, 90.0);
  app.add("--scaling", flags->scaling,
          "show speed-up against the first point; weak lets the batch grow with the GPUs")
      .one_of({"strong", "weak"});
  add_threads_flag(app, flags->threads);
  add_data_flag(app, flags->data);
  return within_memory_limit({app, [flags] { return run_compare(*flags); }});
}

}  // namespace stepcast::cli
