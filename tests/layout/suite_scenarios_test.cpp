// SPDX-License-Identifier: Apache-2.0
// The recorded runs of suites/ happened: none of them may be called illegal, only not modelled yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "core/json_tree.h"
#include "layout/data_folders.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "places.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

TEST(SuiteScenarios, AreReadOrRefusedAsNotSupported) {
  const std::string root = source_folder();
  const DataFolders folders = {root + "/models", root + "/topologies", root + "/profiles"};
  std::size_t read = 0;
  for (const auto& entry : fs::directory_iterator(root + "/suites")) {
    if (entry.path().extension() != ".json") continue;
    auto suite = JsonDocument::load(entry.path().string());
    ASSERT_TRUE(suite.has_value()) << to_string(suite.error());
    for (const auto& recorded : (*suite)->root().raw().at("cases")) {
      if (recorded.contains("collective")) continue;
      auto document = JsonDocument::from(recorded.at("scenario"), "scenario");
      const auto scenario = read_scenario(*document, folders);
      if (scenario) {
        ++read;
        EXPECT_EQ(scenario->micro_batches() * scenario->layout.micro_batch * scenario->layout.dp,
                  scenario->training.global_batch);
      } else {
        EXPECT_TRUE(std::ranges::all_of(
            scenario.error(),
            [](const Error& error) { return error.code == ErrorCode::kNotSupported; }))
            << recorded.at("id") << "\n"
            << to_string(scenario.error());
      }
    }
  }
  EXPECT_GT(read, 900u);  // the dense cases without fp8
}

}  // namespace
}  // namespace stepcast
