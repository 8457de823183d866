// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/json_tree.h"
#include "diagnose/step_windows.h"
#include "report/breakdown.h"
#include "report/diagnosis_numbers.h"
#include "report/diagnosis_report.h"
#include "report/html/bar_line.h"
#include "report/html/data_table.h"
#include "report/html/legend.h"
#include "report/html/pipeline_picture.h"
#include "report/html/prediction_sections.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

using namespace html;

DataCell signed_time_cell(double seconds) { return {signed_time_text(seconds), seconds}; }

Section gap_section(const Diagnosis& diagnosis) {
  DataTable table("gaps", "Gaps of more than 1 % of the step",
                  {{"gap", false, true, true},
                   {"time", true},
                   {"of the step", true},
                   {"what to try", false, false, true}});
  for (const Gap& gap : diagnosis.gaps) {
    const double share = gap.seconds / diagnosis.measured_s;
    table.add_row({gap_sentence(gap, diagnosis),
                   signed_time_cell(gap.seconds),
                   {signed_percent_text(share), share},
                   gap_remedy(gap)});
  }
  return {"gaps-section", "Gaps",
          table.empty() ? paragraph("No gap is larger than 1 % of the step.") : table.html()};
}

Section compared_part_section(const Diagnosis& diagnosis) {
  double longest = 1e-12;
  for (const ComparedPart& one : diagnosis.parts) {
    longest = std::max({longest, one.forecast_s, one.measured_s});
  }
  DataTable table(
      "parts", "Where the step goes",
      {{"where"}, {"", false, false}, {"forecast", true}, {"measured", true}, {"gap", true}});
  for (const ComparedPart& one : diagnosis.parts) {
    const auto bar = [&](double time, const char* css, const char* what) {
      return bar_line({{{0, std::max(time, 0.0) / longest, css, ""}},
                       {},
                       fmt::format("{} {}", time_text(Seconds(time)), what)});
    };
    table.add_row({one.words,
                   DataCell(bar(one.forecast_s, "mark-1", "forecast") +
                            bar(one.measured_s, "mark-5", "measured")),
                   signed_time_cell(one.forecast_s), signed_time_cell(one.measured_s),
                   signed_time_cell(one.measured_s - one.forecast_s)});
  }
  return {"parts-section", "Where the step goes",
          legend({{"mark-1", "forecast"}, {"mark-5", "measured"}}) + table.html()};
}

Section compared_kernel_section(const Diagnosis& diagnosis) {
  DataTable table("kernels", "Kernels of a step, the largest difference first",
                  {{"kernels"},
                   {"calls forecast", true},
                   {"calls measured", true},
                   {"time forecast", true},
                   {"time measured", true}});
  for (const ComparedKernels& one : diagnosis.kernels) {
    const auto count = [](std::int64_t calls) {
      return DataCell(fmt::format("{}", calls), static_cast<double>(calls));
    };
    table.add_row({one.words, count(one.forecast.calls), count(one.measured.calls),
                   signed_time_cell(one.forecast.busy_s), signed_time_cell(one.measured.busy_s)});
  }
  return {"kernels-section", "Kernels", table.html({true, true, true})};
}

Section compared_message_section(const Diagnosis& diagnosis) {
  DataTable table("collectives", "Collectives of a step",
                  {{"collective"},
                   {"calls", true},
                   {"bytes forecast", true},
                   {"bytes measured", true},
                   {"busbw forecast", true},
                   {"busbw measured", true},
                   {"exposed forecast", true},
                   {"exposed measured", true},
                   {"late calls", true},
                   {"waits for ranks", true}});
  for (const ComparedMessages& one : diagnosis.messages) {
    const auto rate = [](double value) { return DataCell(message_rate_text(value), value); };
    const auto bytes = [](double value) { return DataCell(message_bytes_text(value), value); };
    const auto count = [](std::int64_t calls) {
      return DataCell(fmt::format("{}", calls), static_cast<double>(calls));
    };
    table.add_row(
        {one.words, count(one.measured.calls), bytes(one.forecast.bytes), bytes(one.measured.bytes),
         rate(one.bandwidth(one.forecast)), rate(one.bandwidth(one.measured, one.waited_s)),
         signed_time_cell(one.forecast.exposed_s), signed_time_cell(one.measured.exposed_s),
         count(one.measured.late_calls), signed_time_cell(one.waited_s)});
  }
  return {"collectives-section", "Collectives", table.html({false, true, true})};
}

// Kernels of one kind that follow each other become one box: a page draws some thousands.
PipelineRow timeline_row(const Timeline& timeline, const Window& step, const Labels& labels) {
  constexpr double kTouches_s = 20e-6;
  PipelineRow out;
  out.name = fmt::format("rank {}", timeline.rank.value);
  for (const Activity& one : timeline.activities) {
    if (one.end_s <= step.begin_s || one.begin_s >= step.end_s) continue;
    const double begin = std::max(one.begin_s, step.begin_s) - step.begin_s;
    const double end = std::min(one.end_s, step.end_s) - step.begin_s;
    const Label& label = labels[one.label];
    if (one.kind != ActivityKind::kCompute) {
      if (!out.traffic.empty() && begin <= out.traffic.back().end + kTouches_s) {
        out.traffic.back().end = std::max(out.traffic.back().end, end);
      } else {
        out.traffic.push_back({begin, end});
      }
      continue;
    }
    const Phase phase = label.family == KernelFamily::kOptimizer ? Phase::kOptimizer : label.phase;
    if (!out.boxes.empty()) {
      PassBox& last = out.boxes.back();
      if (last.phase == phase && last.micro_batch == one.micro_batch &&
          begin <= last.end + kTouches_s) {
        last.end = std::max(last.end, end);
        continue;
      }
    }
    out.boxes.push_back({begin, end, phase, one.micro_batch, -1, false, label.words});
  }
  return out;
}

Section both_timelines(const Diagnosis& diagnosis) {
  PipelinePicture forecast{"forecast-picture", "The forecast step", 0, {}};
  PipelinePicture measured{"measured-picture", "The measured step", 0, {}};
  constexpr std::size_t kMostRows = 16;
  for (std::size_t i = 0; i < diagnosis.timelines.size(); ++i) {
    const Timeline& one = diagnosis.timelines[i];
    PipelinePicture& picture = i < diagnosis.forecast_timelines ? forecast : measured;
    if (picture.rows.size() >= kMostRows) continue;
    const Window& step = median_step(one);
    picture.rows.push_back(timeline_row(one, step, diagnosis.labels));
    picture.length = std::max(picture.length, step.length());
  }
  forecast.length = measured.length = std::max(forecast.length, measured.length);
  return {"timelines", "Timelines of both",
          element("h3", {}, "Forecast") + pipeline_picture(forecast) +
              element("h3", {}, "Measured") + pipeline_picture(measured) +
              note("Both on one time axis, from the end of the step before. Kernels that follow "
                   "each other are one box; the thin lane below is communication.")};
}

}  // namespace

Written diagnosis_html(const Scenario& scenario, const Prediction& prediction,
                       const Diagnosis& diagnosis) {
  Page page;
  page.title = headline(scenario);
  page.subtitle = layout_text(scenario) + fmt::format(" · rank {}", diagnosis.rank.value);
  page.mood = diagnosis.gaps.empty() ? Mood::kGood : Mood::kWarning;
  page.verdict = diagnosis_verdict(diagnosis) + ".";
  page.figures = {{"Forecast", time_text(Seconds(diagnosis.forecast_s)),
                   fmt::format("{} to {}", time_text(prediction.step_time_low),
                               time_text(prediction.step_time_high))},
                  {"Measured", time_text(Seconds(diagnosis.measured_s)),
                   fmt::format("{} accounted for", percent_text(diagnosis.accounted))}};
  page.sections = {gap_section(diagnosis),
                   compared_part_section(diagnosis),
                   both_timelines(diagnosis),
                   compared_kernel_section(diagnosis),
                   compared_message_section(diagnosis),
                   scenario_section(scenario)};
  page.data = diagnosis_json(scenario, prediction, diagnosis);
  return page_text(page);
}

}  // namespace stepcast
