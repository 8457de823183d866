// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include "core/row_types.h"

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/write_rows.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "validate/baseline.h"
#include "validate/baseline_document.h"
#include "validate/json_lines.h"
#include "validate/run_figures.h"

namespace stepcast {
namespace {

constexpr const char* kPredicted = "predicted";
constexpr const char* kMeasured = "measured";
constexpr const char* kExample = "measured:step_time=0.10";

// "time_s.exposed.tp": where the prediction file has the part.
std::string path_of(const TimePartRow& row) {
  return fmt::format("time_s.{}{}", row.kind == TimeKind::kExposed ? "exposed." : "", row.key);
}

RecordedFigures figures_of(const Validation& validation, bool predicted) {
  RecordedFigures out;
  for (const RunFigure* one : limited_figures()) {
    if (const ComparedFigure* figure = validation.figure(one->key)) {
      out[one->key] = predicted ? figure->predicted : figure->measured;
    }
  }
  const TimeParts& time = predicted ? validation.predicted.time : validation.measured.time;
  for (const TimePartRow& row : kTimeParts) out[path_of(row)] = (time.*row.time).value();
  return out;
}

void flatten(const SortedJson& value, const std::string& path,
             std::map<std::string, SortedJson>& out) {
  if (!value.is_object()) {
    out[path] = value;
    return;
  }
  for (const auto& [key, member] : value.items()) flatten(member, path + "." + key, out);
}

std::map<std::string, SortedJson> settings_of(const Scenario& scenario, const RunFacts& run) {
  std::map<std::string, SortedJson> out;
  const SortedJson resolved = to_json(scenario);
  for (const char* part : {"model", "training", "layout"}) {
    if (resolved.contains(part)) flatten(resolved[part], part, out);
  }
  out["backend"] = run.backend;
  if (run.alone) out["rank"] = run.alone->value;
  return out;
}

double limit_of(const RunFigure& judged, bool predicted, const std::vector<Tolerance>& limits) {
  double out = judged.drift;
  const char* side = predicted ? kPredicted : kMeasured;
  for (const Tolerance& limit : limits) {
    if (limit.metric == judged.limited && (limit.row == "all" || limit.row == side)) {
      out = limit.limit;
    }
  }
  return out;
}

std::string change_text(double change, bool fraction) {
  return fraction ? fmt::format("{:+.1f} points", 100 * change)
                  : fmt::format("{:+.1f} %", 100 * change);
}

std::string limit_text(double limit, bool fraction) {
  return fmt::format("{:g} {}", 100 * limit, fraction ? "points" : "%");
}

std::string title_of(const DriftRow& row) {
  return fmt::format("{}: {}", row.predicted ? kPredicted : kMeasured, row.words);
}

// The part of the time that moved most, as a reason.
std::string largest_part(const std::vector<DriftRow>& rows, bool predicted) {
  const DriftRow* largest = nullptr;
  const auto moved = [](const DriftRow& row) { return row.now - row.recorded; };
  for (const DriftRow& row : rows) {
    if (row.predicted != predicted || row.limit) continue;
    if (!largest || std::abs(moved(row)) > std::abs(moved(*largest))) largest = &row;
  }
  if (!largest || moved(*largest) == 0) return "";
  return fmt::format("; most of all {} ({:+.4g} ms)", largest->words, 1e3 * moved(*largest));
}

// Others slow a run down and make its ranks wait for each other, and change none of its memory.
bool was_busy(const MeasuredRun& run) { return run.load && run.load->processors.is_too_busy(); }

void compare_side(const RecordedFigures& recorded, const Validation& validation, bool predicted,
                  const std::vector<Tolerance>& limits, BaselineDrift& out) {
  const RecordedFigures now = figures_of(validation, predicted);
  const auto found = [](const RecordedFigures& figures, const std::string& key) {
    const auto at = figures.find(key);
    return at == figures.end() ? std::nullopt : std::optional(at->second);
  };
  for (const TimePartRow& row : kTimeParts) {
    const std::string key = path_of(row);
    const auto before = found(recorded, key), after = found(now, key);
    if (!before || !after || (*before == 0 && *after == 0)) continue;
    const double change = *before == 0 ? 0 : (*after - *before) / *before;
    out.rows.push_back({predicted, key, row.words, *before, *after, change, {}, {}});
  }
  for (const RunFigure* one : limited_figures()) {
    const auto before = found(recorded, one->key), after = found(now, one->key);
    if (!before) continue;
    DriftRow row{predicted, one->key, one->words, *before, 0, 0, {}, {}};
    row.limit = limit_of(*one, predicted, limits);
    if (!after) {
      out.broken.push_back({title_of(row), "was recorded and was not measured now"});
      continue;
    }
    row.now = *after;
    row.change = row.now - row.recorded;
    if (!one->as_difference && row.recorded != 0) row.change /= row.recorded;
    if (std::abs(row.change) > *row.limit) {
      const bool is_worse = (row.change > 0) == (one->forecast.better == Better::kLess);
      row.state = predicted || is_worse ? DriftState::kBroken : DriftState::kBetter;
    }
    const bool of_times = one->forecast.unit != FigureUnit::kBytes;
    if (row.state == DriftState::kBroken && !predicted && of_times &&
        was_busy(validation.measured)) {
      row.state = DriftState::kInconclusive;
    }
    if (row.state == DriftState::kBroken || row.state == DriftState::kInconclusive) {
      const bool time = one->forecast.unit == FigureUnit::kSeconds;
      (row.state == DriftState::kBroken ? out.broken : out.inconclusive)
          .push_back(
              {title_of(row), fmt::format("{} against the baseline, beyond the limit of {}{}",
                                          change_text(row.change, one->as_difference),
                                          limit_text(*row.limit, one->as_difference),
                                          time ? largest_part(out.rows, predicted) : "")});
    }
    out.rows.push_back(std::move(row));
  }
}

// By the alphabet.
const std::vector<std::string>& recorded_figure_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const RunFigure* one : limited_figures()) out.emplace_back(one->key);
    for (const TimePartRow& row : kTimeParts) out.push_back(path_of(row));
    std::ranges::sort(out);
    return out;
  }();
  return names;
}

}  // namespace

Written validation_baseline_text(const Scenario& scenario, const RunFacts& run,
                                 const Validation& validation) {
  const Accelerator& device = scenario.cluster.spec.accelerator;
  const ValidationBaseline baseline{{device.title, device.cores},
                                    settings_of(scenario, run),
                                    figures_of(validation, true),
                                    figures_of(validation, false)};
  Json out{{kValidationBaselineKey, kBaselineFormat}};
  out.update(json_of(baseline));
  return json_lines(out);
}

Result<ValidationBaseline> read_validation_baseline(const std::string& text,
                                                    const std::string& file) {
  return read_baseline_document<ValidationBaseline>(
      text, file, kValidationBaselineKey, kBaselineKey, "is a baseline of check, not validate");
}

Errors other_run(const ValidationBaseline& baseline, const Scenario& scenario, const RunFacts& run,
                 const std::string& file) {
  Errors errors;
  const SortedJson whole = "the whole layout";
  const auto text = [&](const SortedJson& value) {
    return &value == &whole ? value.get_text() : json_text(value);
  };
  const auto differs = [&](const std::string& path, const SortedJson& then, const SortedJson& now) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("was {} when it was recorded, and is {}", text(then), text(now)),
                      file, path, "record this run with --update, or in another file"});
  };
  const auto now = settings_of(scenario, run);
  for (const auto& [path, value] : baseline.settings) {
    const auto found = now.find(path);
    if (found != now.end() && found->second != value) differs(path, value, found->second);
  }
  // A rank alone is another run than the whole layout.
  if (baseline.settings.contains("rank") && !run.alone) {
    differs("rank", baseline.settings.at("rank"), whole);
  } else if (!baseline.settings.contains("rank") && run.alone) {
    differs("rank", whole, now.at("rank"));
  }
  return errors;
}

std::string other_machine(const ValidationBaseline& baseline, const Accelerator& device) {
  const auto words = [](const std::string& name, std::int64_t count) {
    return count > 0 ? fmt::format("'{}' with {} core{}", name, count, count == 1 ? "" : "s")
                     : fmt::format("'{}'", name);
  };
  const auto& [title, cores] = baseline.machine;
  const bool same =
      title == device.title && (cores == 0 || device.cores == 0 || cores == device.cores);
  return same ? ""
              : fmt::format("recorded on {}, this machine is {}", words(title, cores),
                            words(device.title, device.cores));
}

Result<Tolerance> parse_drift_limit(std::string_view text) {
  auto out = parse_limit(text, limited_names(), kExample, "--drift");
  if (!out) return out;
  if (out->limit < 0 || (out->row != "all" && out->row != kPredicted && out->row != kMeasured)) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is not a limit of a change", text), "",
                    "--drift", fmt::format("for example {}", kExample)});
  }
  return out;
}

BaselineDrift drift_from(const ValidationBaseline& baseline, const Validation& validation,
                         const std::vector<Tolerance>& limits) {
  BaselineDrift out;
  compare_side(baseline.predicted, validation, true, limits, out);
  compare_side(baseline.measured, validation, false, limits, out);
  return out;
}

Rows ValidationBaseline::Machine::fields() {
  static constexpr Row all[] = {
      row<&Machine::device>("device").required().says(
          "title of the processor or GPU; runs on other machines are not compared"),
      row<&Machine::cores>("cores")
          .within(1, ObjectReader::kMaxCount)
          .unless_usual()
          .says("of a processor's machine")};
  return rows_of<Machine>(all);
}

Rows ValidationBaseline::fields() {
  using F = ValidationBaseline;
  constexpr auto figures = [](Row one) {
    return one.required().named(recorded_figure_names).within(-1e300, 1e300);
  };
  static constexpr Row all[] = {
      row<&F::machine>("machine").required(),
      row<&F::settings>("run").required().says(
          "model, training and layout as resolved, by key path, `backend`, "
          "and `rank` where one ran alone"),
      figures(row<&F::predicted>("predicted")).says("figures of the forecast"),
      figures(row<&F::measured>("measured")).says("the run's")};
  return rows_of<F>(all);
}

}  // namespace stepcast
