// SPDX-License-Identifier: Apache-2.0
#include "report/forecast_report.h"

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "predict/prediction.h"
#include "report/explain.h"
#include "report/pipeline_strip.h"
#include "report/prediction_json.h"
#include "report/prediction_table.h"
#include "report/run_report.h"
#include "report/samples_report.h"

namespace stepcast {

Written forecast_json(const ForecastReport& report) {
  auto object = prediction_object(report.scenario, report.prediction);
  object["recorded_runs"] = recorded_runs_object(report.recorded);
  if (report.loss) {
    object["loss"] = loss_object(*report.loss, report.scenario, report.prediction);
  }
  if (report.prediction.samples.count > 0) {
    object["samples"] = samples_object(report.scenario, report.prediction);
  }
  if (report.run) object["economics"] = run_object(report.run->terms, report.run->forecast);
  if (report.explained) object["explain"] = explanation_object(*report.explained);
  return json_file(object, 2);
}

Written forecast_csv(const ForecastReport& report) {
  if (!report.run) return prediction_csv(report.scenario, report.prediction);
  return prediction_csv(report.scenario, report.prediction,
                        run_columns(report.run->terms, report.run->forecast));
}

Written forecast_text(const ForecastReport& report, Form form) {
  const auto& run = report.run;
  Written out = prediction_table(report.scenario, report.prediction, form);
  if (report.pipeline) {
    out += heading("The pipeline over one step", form) +
           pipeline_strips({{"", &report.prediction}}, form);
  }
  if (report.loss) out += loss_table(*report.loss, report.scenario, report.prediction, form);
  out += samples_table(report.scenario, report.prediction, form);
  out += recorded_runs_table(report.recorded, form);
  if (run) out += run_table(run->terms, run->forecast, form);
  if (!report.explained) return out;
  Written explanation = explanation_text(report.scenario, report.prediction, *report.explained);
  if (run) explanation += "\n" + simulation_text(run->terms, run->forecast, report.seed);
  if (form == Form::kMarkdown) {
    return out + heading("Explanation", form) + markdown_code_block(explanation.text());
  }
  return out + "\n" + explanation;
}

}  // namespace stepcast
