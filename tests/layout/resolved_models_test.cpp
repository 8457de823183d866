// SPDX-License-Identifier: Apache-2.0
// The resolved text of a scenario is a scenario, whichever model it describes.
#include <gtest/gtest.h>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "model/import_model.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Result<Scenario> read(const std::string& text) {
  auto document = JsonDocument::parse(text, "resolved.json");
  if (!document) return failure(document.error());
  return read_scenario(**document, testing::source_folders());
}

// A short sequence, inside every window.
std::string scenario_of(const std::string& model) {
  return R"({"stepcast": 1, "cluster": "dgx-h100x1", "model": ")" + model +
         R"(", "training": {"global_batch": 8, "sequence_length": 128}})";
}

TEST(ResolvedScenario, OfEveryShippedModelReadsBackAsItself) {
  const auto models = list_models(testing::source_folders().models);
  ASSERT_TRUE(models) << to_string(models.error());
  int supported = 0;
  for (const ModelEntry& entry : *models) {
    const auto first = read(scenario_of(entry.name));
    if (!first) {  // projected embeddings
      EXPECT_EQ(first.error().front().code, ErrorCode::kNotSupported) << entry.name;
      continue;
    }
    ++supported;
    const SortedJson resolved = to_json(*first);
    const auto second = read(json_text(resolved));
    ASSERT_TRUE(second) << entry.name << "\n" << to_string(second.error());
    EXPECT_EQ(to_json(*second), resolved) << entry.name;
    EXPECT_EQ(count_parameters(second->model).total(), count_parameters(first->model).total())
        << entry.name;
  }
  EXPECT_GE(supported, 40);
}

}  // namespace
}  // namespace stepcast
