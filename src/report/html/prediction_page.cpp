// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/scenario.h"
#include "report/breakdown.h"
#include "report/figure_columns.h"
#include "report/html/data_table.h"
#include "report/html/prediction_sections.h"
#include "report/html/run_section.h"
#include "report/number_text.h"
#include "report/prediction_json.h"
#include "report/prediction_table.h"
#include "report/run_report.h"

namespace stepcast {
namespace {

using namespace html;

Mood mood_of(const Prediction& prediction) {
  switch (verdict_of(prediction)) {
    case Verdict::kFits:
      return Mood::kGood;
    case Verdict::kTight:
      return Mood::kWarning;
    case Verdict::kDoesNotFit:
      return Mood::kBad;
  }
  return Mood::kBad;
}

std::string verdict_sentence(const Prediction& prediction) {
  std::string out =
      memory_words(prediction) + fmt::format("; a step takes {}", time_text(prediction.step_time));
  if (!prediction.alone) out += fmt::format(", an MFU of {}", mfu_text(prediction));
  std::string losses;
  for (const TimePart& loss : largest_losses(prediction.waterfall, prediction.step_time, 3)) {
    losses += fmt::format("{}{} ({})", losses.empty() ? "" : ", ", loss.label,
                          percent_text(loss.time / prediction.step_time));
  }
  return out + (losses.empty() ? "." : "; most is lost to " + losses + ".");
}

}  // namespace

namespace html {

Section recorded_section(const RecordedRuns& runs) {
  std::string sentence = recorded_runs_text(runs);
  if (!sentence.empty()) sentence[0] = 'F';
  DataTable table(
      "recorded", "Recorded runs that have most in common with this one",
      {{"run"}, {"similar", true}, {"forecast was", true}, {"how it differed", false, true, true}});
  for (const RecordedRun& run : runs.nearest) {
    table.add_row({run.run,
                   {percent_text(run.likeness, 0), run.likeness},
                   {signed_percent_text(run.error), run.error},
                   run.otherwise});
  }
  return {"recorded-section", "Recorded runs like it",
          table.html() + paragraph(sentence + ".") +
              note("Alike: the mechanisms that both have, as a share of all that either "
                   "has. The interval follows the errors of all runs by mechanism.")};
}

Section of_first_place(Section section) {
  section.title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(section.title[0])));
  section.title = "First place: " + section.title;
  return section;
}

std::string memory_words(const Prediction& prediction) {
  const std::string of =
      fmt::format("{} of {} GiB on the fullest GPU", gib_text(prediction.peak_device),
                  gib_text(prediction.device_memory));
  switch (verdict_of(prediction)) {
    case Verdict::kFits:
      return "It fits, with " + of;
    case Verdict::kTight:
      return "It is tight, with " + of;
    case Verdict::kDoesNotFit:
      return "It does not fit: it needs " + of;
  }
  return of;
}

std::vector<KeyFigure> prediction_figures(const Scenario& scenario, const Prediction& prediction) {
  std::vector<KeyFigure> out;
  out.push_back({"Step time", time_text(prediction.step_time),
                 fmt::format("{} to {}", time_text(prediction.step_time_low),
                             time_text(prediction.step_time_high))});
  if (!prediction.alone) {
    out.push_back({"Tokens/s", number_text(prediction.tokens_per_s),
                   fmt::format("{} per GPU", number_text(prediction.tokens_per_s_per_gpu))});
    out.push_back({"TFLOP/s per GPU", number_text(prediction.model_tflops_per_gpu), "model FLOPs"});
    out.push_back({"MFU", mfu_text(prediction),
                   prediction.reads_causal
                       ? fmt::format("{} with full attention", percent_text(prediction.mfu))
                   : std::isfinite(prediction.hfu)
                       ? fmt::format("HFU {}, {}", percent_text(prediction.hfu),
                                     flop_count_text(prediction.flops))
                       : flop_count_text(prediction.flops)});
  }
  if (scenario.layout.pp > 1) {
    out.push_back({"Bubble", percent_text(prediction.bubble_fraction), "mean of ranks"});
  }
  out.push_back({"Memory", gib_text(prediction.peak_device) + " GiB",
                 fmt::format("of {} GiB", gib_text(prediction.device_memory))});
  return out;
}

}  // namespace html

namespace {

Page page_of(const Scenario& scenario, const Prediction& prediction, const RunOutlook* run) {
  Page page;
  page.title = headline(scenario);
  page.subtitle = model_and_layout_text(scenario);
  page.mood = mood_of(prediction);
  page.verdict = verdict_sentence(prediction);
  page.figures = prediction_figures(scenario, prediction);
  page.sections = {time_section(prediction), pipeline_section(prediction),
                   memory_section(prediction)};
  if (run) {
    page.verdict += run_sentence(*run);
    for (KeyFigure& figure : run_figures(*run)) page.figures.push_back(std::move(figure));
    page.sections.insert(page.sections.begin() + 1, run_section(*run));
  }
  return page;
}

}  // namespace

Written prediction_html(const Scenario& scenario, const Prediction& prediction,
                        const RunOutlook* run, const RecordedRuns& recorded) {
  Page page = page_of(scenario, prediction, run);
  page.sections.push_back(link_section(scenario, prediction));
  page.sections.push_back(path_section(prediction));
  page.sections.push_back(certainty_section(prediction));
  if (!recorded.empty()) page.sections.push_back(recorded_section(recorded));
  page.sections.push_back(scenario_section(scenario));
  auto data = prediction_object(scenario, prediction);
  data["recorded_runs"] = recorded_runs_object(recorded);
  if (run) data["economics"] = run_object(run->terms, run->forecast);
  page.data = json_file(data, 2);
  return page_text(page);
}

Written prediction_pictures(const Scenario& scenario, const Prediction& prediction,
                            const RunOutlook* run) {
  return part_text(page_of(scenario, prediction, run));
}

}  // namespace stepcast
