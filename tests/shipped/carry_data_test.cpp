// SPDX-License-Identifier: Apache-2.0
#include "shipped/carry_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/carried_files.h"
#include "core/json.h"
#include "core/parse_json.h"
#include "core/text_file.h"
#include "places.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The program carries each file of a folder, value by value.
void expect_carried(const fs::path& folder, const std::string& as, std::size_t at_least) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const std::string path = "shipped:/" + as + "/" + fs::relative(entry, folder).string();
    const auto text = read_text_file(entry.path().string());
    ASSERT_TRUE(text.has_value()) << entry;
    const auto written = parse_json(*text, path);
    ASSERT_TRUE(written.has_value()) << entry;
    const auto carried = JsonDocument::load(path);
    ASSERT_TRUE(carried.has_value()) << path;
    EXPECT_EQ((*carried)->root().raw(), *written) << path;
    // Whoever wants a text gets one.
    const auto again = parse_json(read_text_file(path).value_or(""), path);
    ASSERT_TRUE(again.has_value()) << path;
    EXPECT_EQ(*again, *written) << path;
  }
  EXPECT_EQ(carried_below("shipped:/" + as).size(), files);
  EXPECT_GE(files, at_least);
}

TEST(CarryData, CarriesTheTree) {
  carry_shipped_data();
  const fs::path root(source_folder());
  expect_carried(root / "models", "models", 40);
  expect_carried(root / "topologies", "topologies", 20);
  expect_carried(root / "calibrate/profiles", "profiles", 10);
  expect_carried(root / "prices", "prices", 1);
  expect_carried(root / "suites", "suites", 10);
  const std::string gate = "examples/github-actions/stepcast-gate.yml";
  EXPECT_EQ(read_text_file("shipped:/" + gate).value(),
            read_text_file((root / gate).string()).value());
}

TEST(CarryData, ErrorsNameFileAndKey) {
  carry_shipped_data();
  const auto document = JsonDocument::load("shipped:/models/llama-3.1-8b.json");
  ASSERT_TRUE(document.has_value());
  ObjectReader reader((*document)->root());
  reader.finish();
  ASSERT_FALSE((*document)->ok());
  const Error& error = (*document)->errors().front();
  EXPECT_EQ(error.file, "shipped:/models/llama-3.1-8b.json");
  EXPECT_FALSE(error.path.empty());
}

}  // namespace
}  // namespace stepcast
