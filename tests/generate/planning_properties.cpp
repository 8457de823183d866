// SPDX-License-Identifier: Apache-2.0
// A search is never behind what it searches, prints the same for any number of threads, and launch
// files give the forecast back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "core/text/escape.h"
#include "generate/property.h"
#include "layout/data_folders.h"
#include "layout/framework.h"
#include "layout/keys.h"
#include "layout/override.h"
#include "layout/read_scenario.h"
#include "plan/launchable.h"
#include "plan/planner.h"
#include "plan/search.h"
#include "recipes/export.h"
#include "recipes/import.h"
#include "recipes/launch_format.h"
#include "report/plan_report.h"

namespace stepcast::generate {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostGpus = 32;
constexpr std::size_t kMostValues = 6;  // of each opened key

// A scenario of which a search may vary a few keys, and all that it fixes otherwise.
struct OpenedScenario {
  json file;
  std::vector<const Key*> open;
};

// The scenario with every searched key stated but two or three.
std::optional<OpenedScenario> opened(Case& c) {
  const Scenario& s = c.scenario();
  if (s.cluster.gpus() > kMostGpus || s.cluster.topology.gpus().empty()) return std::nullopt;
  OpenedScenario out;
  out.file = json::parse(c.text());
  Draw draw = c.draw("opened");
  std::vector<const Key*> searched;
  for (const Key& key : layout_keys()) {
    if (key.search != nullptr) searched.push_back(&key);
  }
  const auto open = static_cast<std::size_t>(draw.number({1, 2, 2, 3}));
  while (out.open.size() < open) {
    const Key* key = draw.of(searched);
    if (std::ranges::find(out.open, key) == out.open.end()) out.open.push_back(key);
  }
  out.file["layout"] = json::parse(json_text(to_json(s)["layout"]));
  out.file["training"]["framework"] = name_of(s.training.framework);
  for (const Key* key : out.open) {
    std::string pointer = std::string("/") + key->path;
    std::ranges::replace(pointer, '.', '/');
    const json::json_pointer place(pointer);
    if (out.file.contains(place)) out.file.at(place.parent_pointer()).erase(place.back());
    if (key->search->adds == KeySearch::Adds::kAxis) out.file["layout"].erase("dp");
  }
  return out;
}

// Each combination of values that a search may try for the open keys.
void for_each_variant(const OpenedScenario& opened, const Scenario& base, std::size_t at,
                      const json& file, const std::function<void(const json&)>& visit) {
  if (at == opened.open.size()) return visit(file);
  const Key& key = *opened.open[at];
  std::vector<std::int64_t> values = key.search->values(base);
  if (values.size() > kMostValues) values.resize(kMostValues);
  for (const std::int64_t value : values) {
    auto changed = SortedJson::parse(file.dump());
    if (!apply_override(changed, key.path, key.search->text(value)).empty()) continue;
    for_each_variant(opened, base, at + 1, json::parse(json_text(changed)), visit);
  }
}

Result<SearchResult> found_by(const Planner& planner, int threads) {
  SearchOptions options;
  options.top = 3;
  options.prove = true;
  options.memory_margin = kMemoryMargin;
  options.threads = threads;
  return planner.search(options);
}

// Whether the framework has these: a search proposes nothing else.
bool is_offered(const Scenario& s) {
  const FrameworkTraits& has = traits_of(s.training.framework);
  const bool hides = has.offers_pipeline_overlap(s.layout.schedule);
  return has.offers(s.layout.schedule) && (hides || !s.layout.overlap.pp) &&
         not_proposed(s).empty();
}

// Whether a search tries these values of the open keys beside each other: the ranks of a node that
// share one copy of the states are fewer with more tensor parallelism.
bool is_tried(const OpenedScenario& opened, const Scenario& s) {
  return std::ranges::all_of(opened.open, [&](const Key* key) {
    const KeySearch::Values values = key->search->values(s);
    return std::ranges::find(values, key->search->of(s.layout)) != values.end();
  });
}

Verdict plan_is_not_behind(Case& c) {
  const auto open = opened(c);
  if (!open) return does_not_apply();
  const auto document = std::move(*JsonDocument::parse(open->file.dump(), "drawn.json"));
  const auto planner = Planner::make(*document, source_folders());
  if (!planner) return does_not_apply();
  const auto result = found_by(**planner, 1);
  if (!result) return violated(to_string(result.error()));
  double best = std::numeric_limits<double>::infinity();
  for (const FoundLayout& found : result->found) {
    best = std::min(best, found.prediction.step_time.value());
  }
  Verdict out = holds();
  for_each_variant(*open, c.scenario(), 0, open->file, [&](const json& file) {
    const auto variant = read_text(file.dump());
    if (out.kind == Verdict::kViolated || !variant || !is_offered(*variant)) return;
    if (!is_tried(*open, *variant)) return;
    const auto forecast = predict(*variant, source_folders());
    if (!forecast || forecast->peak_device > result->memory_limit) return;
    if (best <= forecast->step_time.value() * (1 + 1e-9)) return;
    out = violated(fmt::format("plan finds {} s, and {} takes {} s", best, file["layout"].dump(),
                               forecast->step_time.value()));
  });
  return out;
}

Verdict plan_is_the_same_for_any_threads(Case& c) {
  const auto open = opened(c);
  if (!open) return does_not_apply();
  std::vector<std::string> printed;
  for (const int threads : {1, 3}) {
    const auto document = std::move(*JsonDocument::parse(open->file.dump(), "drawn.json"));
    const auto planner = Planner::make(*document, source_folders());
    if (!planner) return does_not_apply();
    const auto result = found_by(**planner, threads);
    if (!result) return violated(to_string(result.error()));
    printed.push_back(plan_json(PlanReport{**planner, *result, {}}).text());
  }
  return printed[0] == printed[1] ? holds() : violated("3 threads print another plan than one");
}

Verdict launch_files_give_it_back(Case& c) {
  const Scenario& s = c.scenario();
  const LaunchFormat* format = launch_format_of(s.training.framework);
  if (format == nullptr) return does_not_apply();
  const auto exported = export_scenario(s, c.text(), format->name, {}, source_folders());
  if (!exported) return does_not_apply();
  ImportInput input;
  input.text = text_to_import(exported->files.back().text);
  input.file = "exported";
  input.models_folder = source_folders().models;
  input.gpus = s.cluster.gpus();
  input.layers = s.model.layers;
  const ImportedScenario imported = import_text(format->name, input);
  if (!imported.errors.empty()) return violated(to_string(imported.errors));
  const auto back = read_text(json_text(scenario_document(imported)));
  if (!back) return violated(to_string(back.error()));
  const auto forecast = predict(*back, source_folders());
  if (!forecast) return violated(to_string(forecast.error()));
  const Prediction& own = *c.forecast();
  if (forecast->step_time == own.step_time && forecast->peak_device == own.peak_device) {
    return holds();
  }
  return violated(fmt::format("{} s and {} bytes come back as {} s and {} bytes",
                              own.step_time.value(), own.peak_device, forecast->step_time.value(),
                              forecast->peak_device));
}

}  // namespace

std::vector<Property> planning_properties() {
  return {
      {"plan_is_not_behind", "a search is at least as good as each layout that it may take",
       plan_is_not_behind, 10, 30},
      {"plan_is_the_same_for_any_threads", "threads change no byte of a plan",
       plan_is_the_same_for_any_threads, 20, 30},
      {"launch_files_give_it_back", "what is exported forecasts the same when it is imported",
       launch_files_give_it_back, 1, 10},
  };
}

}  // namespace stepcast::generate
