// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "validate/baseline.h"
#include "validate/json_lines.h"
#include "validate/run_figures.h"

namespace stepcast {
namespace {

constexpr std::int64_t kFormat = 1;
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
             std::map<std::string, std::string>& out) {
  if (!value.is_object()) {
    out[path] = json_text(value);
    return;
  }
  for (const auto& [key, member] : value.items()) flatten(member, path + "." + key, out);
}

std::map<std::string, std::string> settings_of(const Scenario& scenario, const RunFacts& run) {
  std::map<std::string, std::string> out;
  const SortedJson resolved = to_json(scenario);
  for (const char* part : {"model", "training", "layout"}) {
    if (resolved.contains(part)) flatten(resolved[part], part, out);
  }
  out["backend"] = json_text(SortedJson(run.backend));
  if (run.alone) out["rank"] = json_text(SortedJson(run.alone->value));
  return out;
}

void read_figures(ObjectReader& reader, const char* key, RecordedFigures& out) {
  const auto value = reader.required(key);
  if (!value) return;
  ObjectReader figures(*value);
  const auto read = [&](const std::string& name) {
    if (const auto figure = figures.number(name, -1e300, 1e300)) out[name] = *figure;
  };
  for (const RunFigure* one : limited_figures()) read(one->key);
  for (const TimePartRow& row : kTimeParts) read(path_of(row));
  figures.finish();
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
      row.state = predicted || row.change > 0 ? DriftState::kBroken : DriftState::kBetter;
    }
    if (row.state == DriftState::kBroken) {
      const bool time = one->unit == FigureUnit::kSeconds;
      out.broken.push_back(
          {title_of(row), fmt::format("{} against the baseline, beyond the limit of {}{}",
                                      change_text(row.change, one->as_difference),
                                      limit_text(*row.limit, one->as_difference),
                                      time ? largest_part(out.rows, predicted) : "")});
    }
    out.rows.push_back(std::move(row));
  }
}

}  // namespace

Written validation_baseline_text(const Scenario& scenario, const RunFacts& run,
                                 const Validation& validation) {
  Json out;
  out[kValidationBaselineKey] = kFormat;
  const Accelerator& device = scenario.cluster.spec.accelerator;
  out["machine"]["device"] = device.title;
  if (device.cores > 0) out["machine"]["cores"] = device.cores;
  for (const auto& [path, value] : settings_of(scenario, run)) {
    out["run"][path] = Json::parse(value);
  }
  for (const bool predicted : {true, false}) {
    Json& side = out[predicted ? kPredicted : kMeasured] = Json::object();
    for (const auto& [key, value] : figures_of(validation, predicted)) side[key] = value;
  }
  return json_lines(out);
}

Result<ValidationBaseline> read_validation_baseline(const std::string& text,
                                                    const std::string& file) {
  auto parsed = JsonDocument::parse(text, file);
  if (!parsed) return failure(parsed.error());
  JsonDocument& document = **parsed;
  ObjectReader reader(document.root());
  if (reader.has(kBaselineKey)) {
    reader.fail(kBaselineKey, ErrorCode::kFormat, "is a baseline of check, not validate");
    return failure(document.errors());
  }
  const auto format = reader.required(kValidationBaselineKey);
  if (format && (!format->raw().is_number() || format->raw() != kFormat)) {
    reader.fail(kValidationBaselineKey, ErrorCode::kFormat,
                format->dump() + " is not a format that is read",
                fmt::format("format {}", kFormat));
    return failure(document.errors());
  }
  ValidationBaseline out;
  if (const auto machine = reader.required("machine")) {
    ObjectReader facts(*machine);
    out.device = facts.required_text("device");
    out.cores = facts.integer("cores", 1).value_or(0);
    facts.finish();
  }
  if (const auto run = reader.required("run")) {
    if (!run->is_object()) run->fail(ErrorCode::kWrongType, "is not an object");
    if (run->is_object()) {
      for (const auto& [path, value] : run->raw().items()) {
        out.settings[path] = json_text(value);
      }
    }
  }
  read_figures(reader, kPredicted, out.predicted);
  read_figures(reader, kMeasured, out.measured);
  reader.finish();
  if (!document.ok()) return failure(document.errors());
  return out;
}

Errors other_run(const ValidationBaseline& baseline, const Scenario& scenario, const RunFacts& run,
                 const std::string& file) {
  Errors errors;
  const auto differs = [&](const std::string& path, const std::string& then,
                           const std::string& now) {
    errors.push_back({ErrorCode::kIllegal,
                      fmt::format("was {} when it was recorded, and is {}", then, now), file, path,
                      "record this run with --update, or in another file"});
  };
  const auto now = settings_of(scenario, run);
  for (const auto& [path, value] : baseline.settings) {
    const auto found = now.find(path);
    if (found != now.end() && found->second != value) differs(path, value, found->second);
  }
  // A rank alone is another run than the whole layout.
  if (baseline.settings.contains("rank") && !run.alone) {
    differs("rank", baseline.settings.at("rank"), "the whole layout");
  } else if (!baseline.settings.contains("rank") && run.alone) {
    differs("rank", "the whole layout", now.at("rank"));
  }
  return errors;
}

std::string other_machine(const ValidationBaseline& baseline, const Accelerator& device) {
  const auto words = [](const std::string& title, std::int64_t cores) {
    return cores > 0 ? fmt::format("'{}' with {} core{}", title, cores, cores == 1 ? "" : "s")
                     : fmt::format("'{}'", title);
  };
  const bool same = baseline.device == device.title &&
                    (baseline.cores == 0 || device.cores == 0 || baseline.cores == device.cores);
  return same ? ""
              : fmt::format("recorded on {}, this machine is {}",
                            words(baseline.device, baseline.cores),
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

}  // namespace stepcast
