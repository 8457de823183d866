// SPDX-License-Identifier: Apache-2.0
#include "core/carried_files.h"

#include "core/data_name.h"
#include "core/json.h"
#include "core/temporary_folder.h"
#include "core/text_file.h"

namespace stepcast {
namespace {

constexpr CarriedFile kFiles[] = {{"shipped:/models/a.json", R"({"name":"a"})"},
                                  {"shipped:/models/b.json", R"({"name":)"},
                                  {"shipped:/models/old/c.json", "{}"},
                                  {"shipped:/suites/d.json", "{}"}};

class CarriedFiles : public ::testing::Test {
 protected:
  CarriedFiles() { carry_files(kFiles); }
  ~CarriedFiles() override { carry_files({}); }
};

TEST_F(CarriedFiles, AreReadAndListedAsFilesOnTheDisk) {
  EXPECT_EQ(read_text_file("shipped:/models/a.json").value(), R"({"name":"a"})");
  EXPECT_EQ(data_names("shipped:/models").value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(is_data_file("shipped:/suites/d.json"));
  EXPECT_TRUE(data_names("shipped:/prices").value().empty());
}

TEST_F(CarriedFiles, ThatAreNotThereAreRefusedByName) {
  for (const char* path :
       {"shipped:/models/e.json", "shipped:/models", "shipped:", "shipped:/models/a.jso"}) {
    EXPECT_FALSE(is_data_file(path)) << path;
    const auto read = read_text_file(path);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().front().file, path);
  }
}

TEST_F(CarriedFiles, SayWhereTheyAreWrong) {
  const auto document = JsonDocument::load("shipped:/models/b.json");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().front().file, "shipped:/models/b.json");
}

TEST_F(CarriedFiles, HideNothingOnTheDisk) {
  const testing::TemporaryFolder folder;
  folder.write("a.json", "{}");
  EXPECT_TRUE(is_data_file(folder / "a.json"));
  EXPECT_FALSE(is_data_file(folder / "b.json"));
  EXPECT_EQ(data_names(folder / "").value(), (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace stepcast
