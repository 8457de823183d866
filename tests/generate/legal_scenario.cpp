// SPDX-License-Identifier: Apache-2.0
#include "generate/legal_scenario.h"

#include <nlohmann/json.hpp>

#include "core/assert.h"
#include "core/json.h"
#include "generate/sketch.h"
#include "layout/framework.h"
#include "layout/read_scenario.h"
#include "places.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

json::json_pointer place_of(const std::string& path) {
  std::string pointer = "/" + path;
  std::ranges::replace(pointer, '.', '/');
  return json::json_pointer(pointer);
}

// One try. Nothing where model or cluster alone are refused.
bool sketch_scenario(Draw& draw, Sketch& sketch) {
  if (!draw_model(draw, sketch) || !draw_cluster(draw, sketch)) return false;
  draw_degrees(draw, sketch);
  draw_mode_and_attention(draw, sketch);
  draw_layout(draw, sketch);
  draw_training(draw, sketch);
  draw_run(draw, sketch);
  draw_within_exchanges(draw, sketch);
  draw_other_jobs(draw, sketch);
  return true;
}

}  // namespace

void Sketch::set(const std::string& path, json value) { file[place_of(path)] = std::move(value); }
bool Sketch::states(const std::string& path) const { return file.contains(place_of(path)); }

DataType Sketch::wide() const {
  Training training;
  training.precision = precision;
  return training.wide();
}

DataFolders source_folders() {
  const std::string root = source_folder();
  return {root + "/models", root + "/topologies", root + "/calibrate/profiles"};
}

Result<Scenario> read_text(const std::string& text, bool forecasts) {
  const auto document = JsonDocument::parse(text, "drawn.json");
  if (!document) return failure(document.error());
  return forecasts ? read_scenario(**document, source_folders())
                   : read_legal_scenario(**document, source_folders());
}

LegalScenario draw_scenario(std::uint64_t seed, std::uint64_t index, const DrawOptions& options) {
  Draw draw(SeededRandom(seed, index));
  LegalScenario out;
  out.seed = seed;
  out.index = index;
  for (;; ++out.attempts) {
    STEPCAST_ASSERT(out.attempts < 1000, "some drawn scenario is legal");
    Sketch sketch;
    sketch.forecasts = options.forecasts;
    if (!options.framework.empty()) {
      sketch.framework = &traits_of(framework_named(options.framework));
    }
    if (!sketch_scenario(draw, sketch)) continue;
    out.text = sketch.file.dump();
    auto scenario = read_text(out.text, options.forecasts);
    if (scenario) {
      out.scenario = std::move(*scenario);
      return out;
    }
    out.refusal = to_string(scenario.error()) + out.text;
  }
}

}  // namespace stepcast::generate
