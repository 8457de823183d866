// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/breakdown.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/legend.h"
#include "report/html/pipeline_picture.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"
#include "report/validation_json.h"
#include "report/validation_table.h"

namespace stepcast {
namespace {

using namespace html;

std::string shown_figure(const std::string& key, double value) {
  if (key.ends_with("_s") && !key.ends_with("per_s")) return time_text(Seconds(value));
  if (key.ends_with("_bytes")) return gib_text(static_cast<ByteCount>(value)) + " GiB";
  if (key.ends_with("_fraction") || key == "mfu") return percent_text(value);
  return number_text(value);
}

std::string words_of(std::string key) {
  for (const char* unit : {"_s", "_bytes"}) {
    if (key.ends_with(unit) && !key.ends_with("per_s"))
      key.resize(key.size() - std::string_view(unit).size());
  }
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

Section figure_section(const Validation& validation) {
  DataTable table("figures", "Forecast beside the median of the measured steps",
                  {{"figure"}, {"forecast", true}, {"measured", true}, {"error", true}});
  for (const ComparedFigure& figure : validation.figures) {
    table.add_row(
        {words_of(figure.key),
         {shown_figure(figure.key, figure.predicted), figure.predicted},
         {shown_figure(figure.key, figure.measured), figure.measured},
         figure.error ? DataCell(signed_percent_text(*figure.error), *figure.error) : ""});
  }
  const MeasuredRun& measured = validation.measured;
  return {"figures-section", "Forecast beside measured",
          table.html() +
              note(fmt::format("Step time: {} to {} forecast (central 90 %), {} to {} measured "
                               "(p10 to p90 of {} steps). The error of the bubble is a difference.",
                               time_text(validation.predicted.step_time_low),
                               time_text(validation.predicted.step_time_high),
                               time_text(Seconds(measured.step_time.p10)),
                               time_text(Seconds(measured.step_time.p90)), measured.periods))};
}

Section component_section(const Validation& validation) {
  const auto predicted = parts_of(validation.predicted.time);
  const auto measured = parts_of(validation.measured.time);
  double longest = 1e-12;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    longest = std::max({longest, predicted[i].time.value(), measured[i].time.value()});
  }
  DataTable table("components", "Where the step goes, on the critical rank",
                  {{"where"},
                   {"", false, false},
                   {"forecast", true},
                   {"measured", true},
                   {"difference", true}});
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const Seconds forecast = predicted[i].time, run = measured[i].time;
    if (forecast.value() == 0 && run.value() == 0) continue;
    const auto bar = [&](Seconds time, const char* css, const char* what) {
      return bar_line({{{0, time.value() / longest, css, ""}},
                       {},
                       fmt::format("{} {}", time_text(time), what)});
    };
    const Seconds difference = forecast - run;
    table.add_row({predicted[i].label,
                   DataCell(bar(forecast, "mark-1", "forecast") + bar(run, "mark-5", "measured")),
                   {time_text(forecast), forecast.value()},
                   {time_text(run), run.value()},
                   {time_text(difference), difference.value()}});
  }
  return {"components-section", "By component",
          legend({{"mark-1", "forecast"}, {"mark-5", "measured"}}) + table.html()};
}

Section operation_section(const Validation& validation) {
  DataTable table("operations",
                  fmt::format("Operations of rank {} in a step, the largest difference first",
                              validation.measured.critical_rank.value),
                  {{"operation"},
                   {"phase"},
                   {"calls", true},
                   {"forecast", true},
                   {"measured", true},
                   {"difference", true},
                   {"error", true}});
  for (const ComparedOperation& one : validation.operations) {
    std::string phase = name_of(one.phase);
    std::replace(phase.begin(), phase.end(), '_', ' ');
    const double calls = std::max(one.predicted_calls, one.measured_calls);
    const Seconds difference = one.predicted - one.measured;
    table.add_row({one.name,
                   std::move(phase),
                   {fmt::format("{:g}", calls), calls},
                   {time_text(one.predicted), one.predicted.value()},
                   {time_text(one.measured), one.measured.value()},
                   {time_text(difference), difference.value()},
                   one.error ? DataCell(signed_percent_text(*one.error), *one.error) : ""});
  }
  return {"operations-section", "Operations", table.html({true, true, true})};
}

PipelinePicture picture_of(const std::vector<TraceSlice>& slices, const std::string& id,
                           const std::string& label) {
  std::map<std::int32_t, std::vector<const TraceSlice*>> by_row;
  for (const TraceSlice& slice : slices) by_row[slice.rank_class].push_back(&slice);
  PipelinePicture out;
  out.id = id;
  out.label = label;
  for (const auto& [stage, own] : by_row) {
    PipelineRow row = pipeline_row(own);
    row.name = fmt::format("stage {}", stage);
    for (const PassBox& box : row.boxes) out.length = std::max(out.length, box.end);
    out.rows.push_back(std::move(row));
  }
  return out;
}

// Returns slices by stage, of the ranks that stand for them.
std::vector<TraceSlice> forecast_slices(const Prediction& prediction) {
  const std::vector<bool> drawn = classes_of_one_pipeline(prediction);
  std::vector<TraceSlice> out;
  for (const TraceSlice& slice : prediction.slices) {
    const auto c = static_cast<std::size_t>(slice.rank_class);
    if (!drawn[c]) continue;
    out.push_back(slice);
    out.back().rank_class = prediction.rank_classes[c].stage;
  }
  return out;
}

Section timeline_section(const Validation& validation, const std::vector<TraceSlice>& measured) {
  PipelinePicture forecast = picture_of(forecast_slices(validation.predicted), "forecast-picture",
                                        "The forecast step, a row per pipeline stage");
  PipelinePicture run =
      picture_of(measured, "measured-picture", "A measured step, a row per pipeline stage");
  forecast.length = run.length = std::max(forecast.length, run.length);
  return {"timelines", "Timelines of both",
          element("h3", {}, "Forecast") + pipeline_picture(forecast) +
              element("h3", {}, "Measured, the step of median length") + pipeline_picture(run) +
              note("Both on one time axis. Each row is the lowest rank of a stage; numbers are "
                   "micro-batches.")};
}

std::string verdict_sentence(const Validation& validation) {
  const char* verdict = validation.inconclusive() ? "Inconclusive"
                        : validation.passed()     ? "Passed"
                                                  : "Failed";
  std::string out = fmt::format("{}: {}", verdict, validation_summary(validation));
  for (const Finding& finding : validation.broken) {
    out += fmt::format("; {}: {}", finding.title, finding.message);
  }
  if (const std::string busy = busy_machine_text(validation.measured); !busy.empty()) {
    out += "; " + busy;
  }
  return out + ".";
}

}  // namespace

Written validation_html(const Scenario& scenario, const Validation& validation,
                        const std::vector<TraceSlice>& measured) {
  Page page;
  page.title = headline(scenario);
  page.subtitle = layout_text(scenario);
  if (validation.alone) {
    page.subtitle += fmt::format(" · rank {} of {} alone, without communication",
                                 validation.alone->rank.value, validation.alone->ranks);
  }
  const bool is_good = validation.covered && !validation.inconclusive();
  page.mood = !validation.passed() ? Mood::kBad : is_good ? Mood::kGood : Mood::kWarning;
  page.verdict = verdict_sentence(validation);
  page.sections = {figure_section(validation),
                   component_section(validation),
                   operation_section(validation),
                   timeline_section(validation, measured),
                   memory_section(validation.predicted),
                   certainty_section(validation.predicted),
                   scenario_section(scenario)};
  page.data = validation_json(scenario, validation);
  return page_text(page);
}

}  // namespace stepcast
