// SPDX-License-Identifier: Apache-2.0
#include "generate/property.h"

#include <algorithm>
#include <exception>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/data_folders.h"
#include "places.h"
#include "report/prediction_json.h"
#include "report/run_report.h"

namespace stepcast::generate {
namespace {

// FNV-1a, so that each property makes choices of its own.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

const PriceList& shipped_prices() {
  static const PriceList all = load_prices({source_folder() + "/prices"}).value();
  return all;
}

const Result<Prediction>& Case::forecast() {
  if (forecast_) return *forecast_;
  try {
    forecast_ = predict(scenario(), source_folders(), {.trace = true});
  } catch (const std::exception& error) {  // an assertion of the product
    forecast_ = failure({ErrorCode::kIo, error.what(), "", "", ""});
  }
  return *forecast_;
}

Verdict ask(const Property& property, Case& c) {
  if (!c.forecast()) {
    // One that needs more memory than it may take says so, and is none the worse for it.
    const bool is_too_large =
        std::ranges::all_of(c.forecast().error(),
                            [](const Error& error) { return error.code == ErrorCode::kTooMuch; });
    return is_too_large ? does_not_apply() : violated(to_string(c.forecast().error()));
  }
  try {
    return property.check(c);
  } catch (const std::exception& error) {
    return violated(error.what());
  }
}

const nlohmann::ordered_json& Case::document() {
  if (!document_) document_ = document_of(scenario(), *forecast());
  return *document_;
}

Draw Case::draw(const char* property) const {
  return Draw(SeededRandom(drawn_.seed ^ hash_of(property), drawn_.index));
}

nlohmann::ordered_json document_of(const Scenario& scenario, const Prediction& prediction) {
  auto out = nlohmann::ordered_json::parse(json_text(prediction_object(scenario, prediction)));
  if (!scenario.run) return out;
  const RunOutlook run =
      run_outlook(scenario, shipped_prices(),
                  {prediction.step_time, prediction.step_time_low, prediction.step_time_high});
  out["economics"] = nlohmann::ordered_json::parse(json_text(run_object(run.terms, run.forecast)));
  return out;
}

Result<nlohmann::ordered_json> document_of(const Scenario& scenario) {
  const auto prediction = predict(scenario, source_folders());
  if (!prediction) return failure(prediction.error());
  return document_of(scenario, *prediction);
}

const std::vector<Property>& properties() {
  static const std::vector<Property> all = [] {
    std::vector<Property> out;
    for (const auto part : {output_properties, replay_properties, causal_properties,
                            monotone_properties, planning_properties}) {
      for (Property& property : part()) out.push_back(std::move(property));
    }
    return out;
  }();
  return all;
}

const Property* property_named(const std::string& name) {
  const auto found = std::ranges::find(properties(), name, &Property::name);
  return found == properties().end() ? nullptr : &*found;
}

bool is_asked(const Property& property, std::uint64_t index) {
  return (index + hash_of(property.name)) % property.every == 0;
}

}  // namespace stepcast::generate
