// SPDX-License-Identifier: Apache-2.0
// Scenarios for tests of the search.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "layout/data_folders.h"
#include "layout/scenario.h"
#include "places.h"
#include "plan/layout_choice.h"
#include "plan/planner.h"
#include "plan/space.h"
#include "plan/space_count.h"
#include "scenario_from.h"

namespace stepcast {

using testing::source_folders;

inline std::unique_ptr<Planner> planner_of(const std::string& text) {
  auto document = JsonDocument::parse(text, "test");
  if (!document) {
    ADD_FAILURE() << to_string(document.error());
    return nullptr;
  }
  auto planner = Planner::make(**document, source_folders());
  if (!planner) {
    ADD_FAILURE() << text << "\n" << to_string(planner.error());
    return nullptr;
  }
  return std::move(*planner);
}

// All layouts of the space, in order.
inline std::vector<LayoutChoice> all_layouts(const Space& space) {
  std::vector<LayoutChoice> out;
  Scenario scenario = space.base();
  SpaceCount count;
  for (const LayoutChoice& branch : space.branches(count)) {
    space.walk(branch, scenario, [&](const LayoutChoice& choice) { out.push_back(choice); });
  }
  return out;
}

inline std::string words(const Space& space, const LayoutChoice& choice) {
  std::string out;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    out += std::string(space.dimensions()[i]->path) + "=" +
           space.dimensions()[i]->text(choice.values[i]) + " ";
  }
  return out;
}

// Small enough to be searched in a moment.
inline constexpr const char* kQuickSearch = R"({
    "stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
    "training":{"global_batch":16,"sequence_length":1024},"layout":{"recompute":"none"}})";

}  // namespace stepcast
