// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/choices.h"
#include "layout/scenario.h"
#include "report/advice_report.h"
#include "report/figure_columns.h"
#include "report/prediction_json.h"
#include "report/run_report.h"

namespace stepcast {
namespace {

Json demands_object(const AdviceReport& report) {
  const Demands& demands = report.advice.demands;
  Json out;
  put(out, "memory_margin", demands.memory_margin);
  if (demands.tokens_per_s) put(out, "tokens_per_s", *demands.tokens_per_s);
  if (demands.tokens) put(out, "tokens", *demands.tokens);
  if (demands.deadline) put(out, "deadline_s", demands.deadline->value());
  if (demands.budget) put(out, "budget_usd", *demands.budget);
  return out;
}

void put_shortfall(Json& out, const Shortfall& shortfall) {
  out["constraint"] = name_of(shortfall.constraint);
  put(out, "value", shortfall.value);
  put(out, "limit", shortfall.limit);
}

// The figures of a rung's forecast; for a layout that fits also its speed and its run.
void put_forecast(Json& out, const RungResult& result) {
  const Prediction& p = result.layout->prediction;
  put_layout(out, result.scenario());
  out["peak_device_bytes"] = p.peak_device;
  if (!result.fits) return;
  for (const FigureCell& cell : figure_cells(kRungs, p)) put_figure(out, cell.figure, p);
  if (const auto& length = result.run->forecast.length) {
    put(out, "wall_time_s", length->wall_s.value);
    if (length->dollars) put(out, "cost_usd", length->dollars->value);
  }
}

Json rung_object(const AdviceReport& report, const RungResult& result) {
  Json out;
  out["rung"] = result.rung->id;
  out["gpus"] = result.gpus;
  out["mode"] = name_of(result.mode);
  out["verdict"] = name_of(result.verdict);
  if (result.verdict == RungVerdict::kRefused) {
    out["constraint"] = "rule";
  } else if (result.verdict == RungVerdict::kSpare) {
    out["constraint"] = "idle_gpus";
    out["value"] = report.base.cluster.gpus() - result.gpus;
    out["limit"] = 0;
  } else if (!result.shortfalls.empty()) {
    put_shortfall(out, result.shortfalls.front());
    for (std::size_t i = 1; i < result.shortfalls.size(); ++i) {
      put_shortfall(out["also"].emplace_back(), result.shortfalls[i]);
    }
  }
  out["reason"] = rung_text(report, result);
  if (!result.layout) return out;
  put_forecast(out, result);
  if (result.fits && report.advice.advised) {
    put(out, "speed_against_advice",
        speed_against(result, report.advice.rungs[*report.advice.advised]));
  }
  out["proven"] = result.proven;
  return out;
}

Json advice_object(const AdviceReport& report) {
  const RungResult& here = report.advice.rungs[*report.advice.advised];
  const Scenario scenario = here.scenario();
  Json out;
  out["rung"] = here.rung->id;
  put_layout(out, scenario);
  out["mode"] = name_of(scenario.training.mode);
  out["cluster"] = {{"base", scenario.cluster.spec.name}, {"gpus", scenario.cluster.gpus()}};
  out["because"] = because_text(report);
  out["prediction"] = prediction_object(scenario, here.layout->prediction);
  if (report.base.run)
    out["prediction"]["economics"] = run_object(here.run->terms, here.run->forecast);
  return out;
}

}  // namespace

Written advice_json(const AdviceReport& report) {
  const Advice& advice = report.advice;
  Json out;
  out["stepcast"] = 1;
  out["demands"] = demands_object(report);
  out["advice"] = advice.advised ? advice_object(report) : Json(nullptr);
  if (!advice.advised && !advice.interrupted) out["because"] = because_text(report);
  out["rungs"] = Json::array();
  for (const RungResult& result : advice.rungs) out["rungs"].push_back(rung_object(report, result));
  if (!advice.advised) {
    out["ways_out"] = Json::array();
    for (const RungResult& way : advice.ways_out) {
      Json object;
      object["rung"] = way.rung->id;
      object["gpus"] = way.gpus;
      object["mode"] = name_of(way.mode);
      object["meets"] = way.meets();
      if (!way.shortfalls.empty()) put_shortfall(object, way.shortfalls.front());
      put_forecast(object, way);
      out["ways_out"].push_back(std::move(object));
    }
  }
  out["interrupted"] = advice.interrupted;
  return json_file(out, 2);
}

}  // namespace stepcast
