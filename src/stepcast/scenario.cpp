// SPDX-License-Identifier: Apache-2.0
#include "stepcast/scenario.h"

#include "core/assert.h"
#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/text_file.h"
#include "layout/override.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "stepcast/detail/data_root.h"
#include "stepcast/detail/read_scenario.h"

namespace stepcast::api {

std::unique_ptr<JsonDocument> document_of(const Scenario& scenario) {
  auto document = JsonDocument::parse(scenario.json(), scenario.name());
  STEPCAST_ASSERT(document.has_value(), "the text of a scenario is whole");
  return std::move(*document);
}

Result<stepcast::Scenario> read(const Scenario& scenario) {
  return read_scenario(*document_of(scenario), scenario.data().root().folders);
}

Result<Scenario> Scenario::parse(const Data& data, std::string_view json, const std::string& name) {
  const auto document = JsonDocument::parse(json, name);
  if (!document) return failure(document.error());
  return Scenario(data, std::string(json), name);
}

Result<Scenario> Scenario::load(const Data& data, const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) return failure(text.error());
  return parse(data, *text, file);
}

Result<Scenario> Scenario::with(std::string_view path, std::string_view value) const {
  SortedJson changed = SortedJson::parse(json_);
  Errors errors = apply_override(changed, path, value);
  if (!errors.empty()) return failure(std::move(errors));
  return Scenario(data_, json_text(changed), name_);
}

Errors Scenario::errors() const {
  const auto scenario = read(*this);
  return scenario ? Errors{} : scenario.error();
}

Result<std::string> Scenario::resolved() const {
  const auto scenario = read(*this);
  if (!scenario) return failure(scenario.error());
  return json_file(to_json(*scenario), 2).text();
}

}  // namespace stepcast::api
