// SPDX-License-Identifier: Apache-2.0
// Scenarios for tests, from the text of a scenario file.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/json.h"
#include "gpt_case.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "places.h"

namespace stepcast::testing {

inline DataFolders source_folders() {
  const std::string root = source_folder();
  return {root + "/models", root + "/topologies", root + "/calibrate/profiles"};
}

inline Scenario scenario_from(const std::string& text) {
  auto document = JsonDocument::parse(text, "test.json");
  EXPECT_TRUE(document.has_value()) << to_string(document.error());
  auto scenario = read_scenario(**document, source_folders());
  EXPECT_TRUE(scenario.has_value()) << to_string(scenario.error());
  return scenario ? std::move(*scenario) : Scenario{};
}

inline Scenario gpt(const GptCase& c) { return scenario_from(text_of(c)); }

}  // namespace stepcast::testing
