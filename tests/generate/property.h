// SPDX-License-Identifier: Apache-2.0
// These must hold for every legal scenario, as a table: a property is a function over a scenario
// and a row of properties(), in properties.cpp.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "economics/run_forecast.h"
#include "generate/draw.h"
#include "generate/legal_scenario.h"
#include "predict/prediction.h"

namespace stepcast::generate {

// A scenario with what several properties ask of it, made once.
class Case {
 public:
  explicit Case(LegalScenario drawn) : drawn_(std::move(drawn)) {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  const Scenario& scenario() const { return drawn_.scenario; }
  const std::string& text() const { return drawn_.text; }
  // Returns its forecast with samples of memory; the errors of one that has none.
  const Result<Prediction>& forecast();
  const nlohmann::ordered_json& document();  // what `predict --format json` prints
  // Choices of one property for this scenario: a failure that is shrunk makes the same ones.
  Draw draw(const char* property) const;

 private:
  LegalScenario drawn_;
  std::optional<Result<Prediction>> forecast_;
  std::optional<nlohmann::ordered_json> document_;
};

// Returns what `predict --format json` prints of a scenario, with the economics of its run.
Result<nlohmann::ordered_json> document_of(const Scenario& scenario);
nlohmann::ordered_json document_of(const Scenario& scenario, const Prediction& prediction);

const PriceList& shipped_prices();

struct Verdict {
  // Excepted: it does not hold, for the one reason that is named and was checked.
  enum Kind { kHolds, kDoesNotApply, kExcepted, kViolated };
  Kind kind = kHolds;
  std::string what = {};   // of a violation: the figures
  std::string flags = {};  // and what `predict` takes to show it: "--what-if nic=x2"
};
inline Verdict holds() { return {}; }
inline Verdict does_not_apply() { return {Verdict::kDoesNotApply}; }
inline Verdict violated(std::string what, std::string flags = {}) {
  return {Verdict::kViolated, std::move(what), std::move(flags)};
}

struct Property {
  std::string name;  // "folded_is_unfolded"
  std::string says;  // in a sentence
  std::function<Verdict(Case&)> check;
  std::uint64_t every = 1;       // it is asked of one scenario in so many
  std::uint64_t in_hundred = 1;  // it applies to at least so many of a hundred that it is asked of
};

// Judges a scenario. One without a forecast violates each property, and so does one that ends in an
// assertion.
Verdict ask(const Property& property, Case& c);

const std::vector<Property>& properties();                // the first: there is a forecast
const Property* property_named(const std::string& name);  // null: there is none

// The properties of single files, in the order of the table.
std::vector<Property> output_properties();    // of what one forecast says
std::vector<Property> replay_properties();    // of other ways to the same forecast
std::vector<Property> causal_properties();    // of causes, and of what takes time at least
std::vector<Property> monotone_properties();  // of more of a resource
std::vector<Property> planning_properties();  // of a search and of launch files

// Whether a property is asked of the scenario with this index.
bool is_asked(const Property& property, std::uint64_t index);

}  // namespace stepcast::generate
