// SPDX-License-Identifier: Apache-2.0

#include "core/json_tree.h"
#include "economics/run_forecast.h"
#include "fuzz/lines.h"
#include "fuzz/readers.h"
#include "fuzz/target.h"
#include "layout/layout.h"
#include "layout/override.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/prediction.h"

namespace stepcast::fuzz {
namespace {

// How many passes a step has, at most. Above it a forecast is as right, and takes longer.
constexpr std::int64_t kMostPasses = 4096;

bool is_quick(const Scenario& scenario) {
  const Layout& layout = scenario.layout;
  return scenario.cluster.gpus() <= 256 && scenario.model.layers <= 128 &&
         scenario.micro_batches() * layout.pp * layout.virtual_stages <= kMostPasses;
}

void forecast(const Scenario& scenario) {
  if (!is_quick(scenario)) return;
  const auto prediction = predict(scenario, data_folders());
  say_errors_of(prediction);
  if (!prediction || !scenario.run) return;
  run_outlook(scenario, {},
              {prediction->step_time, prediction->step_time_low, prediction->step_time_high});
}

void read_and_forecast(const SortedJson& stated) {
  const auto document = JsonDocument::from(stated, "scenario.json");
  const auto scenario = read_scenario(*document, data_folders());
  say_errors_of(scenario);
  if (scenario) forecast(*scenario);
}

// The lines of the text laid over a scenario that is legal.
void forecast_over(SortedJson stated, std::string_view text) {
  for_each_setting(text, [&](std::string_view path, std::string_view value) {
    say(apply_override(stated, path, value));
  });
  read_and_forecast(stated);
}

SortedJson small_scenario() {
  return {{"stepcast", 1},
          {"model",
           {{"layers", 4},
            {"hidden", 256},
            {"heads", 8},
            {"vocab", 1000},
            {"max_positions", 128},
            {"mlp", "swiglu"},
            {"norm", "rmsnorm"},
            {"position", "rope"}}},
          {"cluster", {{"base", "dgx-h100"}, {"gpus", 8}}},
          {"training", {{"global_batch", 16}, {"sequence_length", 128}}},
          {"layout", SortedJson::object()}};
}

}  // namespace

void forecast_scenario(std::string_view text) {
  with_document(text, [](JsonDocument& document) {
    const auto scenario = read_scenario(document, data_folders());
    if (scenario) forecast(*scenario);
  });
}

void forecast_settings(std::string_view text) { forecast_over(small_scenario(), text); }

void forecast_run(std::string_view text) {
  SortedJson stated = small_scenario();
  stated["run"] = {{"tokens", 1e9}, {"price_per_gpu_hour", 2}, {"failures_per_node_day", 0.01}};
  forecast_over(std::move(stated), text);
}

}  // namespace stepcast::fuzz
