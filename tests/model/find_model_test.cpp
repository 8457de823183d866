// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "model/import_model.h"
#include "model/model.h"
#include "model/shipped_folder.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

class FindModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / "stepcast_find_model" / test->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "My-Llama");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const fs::path& file, const char* text) { std::ofstream(folder_ / file) << text; }
  std::string path(const fs::path& file) const { return (folder_ / file).string(); }

  fs::path folder_;
};

constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 4, "_name_or_path": "elsewhere"})";

TEST_F(FindModel, ReadsAShippedName) {
  const auto model = find_model("llama-3.1-70b", kShippedModels);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(model->name, "llama-3.1-70b");
  EXPECT_EQ(model->layers, 80);
  EXPECT_EQ(model->kv_heads, 8);
}

TEST_F(FindModel, ReadsAConfigFileOrItsFolderUnderTheFoldersName) {
  write("My-Llama/config.json", kConfig);
  for (const char* place : {"My-Llama/config.json", "My-Llama"}) {
    const auto model = find_model(path(place), kShippedModels);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(model->name, "My-Llama");
  }
}

TEST_F(FindModel, OpensOnlyTheFileItNeeds) {
  write("good.json", kConfig);
  write("broken.json", "{");
  const auto model = find_model("good", folder_.string());
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_FALSE(find_model("broken", folder_.string()));
  const auto list = list_models(folder_.string());
  ASSERT_FALSE(list);
  EXPECT_NE(to_string(list.error()).find("broken.json"), std::string::npos);
}

TEST_F(FindModel, SuggestsTheNearestShippedName) {
  const auto model = find_model("llama-3.1-71b", kShippedModels);
  ASSERT_FALSE(model);
  const Error& error = model.error().front();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_NE(error.message.find("llama-3.1-71b"), std::string::npos);
  EXPECT_NE(error.hint.find("llama-3.1-70b"), std::string::npos) << error.hint;
}

TEST_F(FindModel, SuggestsNoModelOfAnotherFamily) {
  const auto hint = [&](const char* name) {
    const auto model = find_model(name, kShippedModels);
    return model ? "found" : model.error().front().hint;
  };
  for (const auto& [name, family] :
       {std::pair("mixtral-8b", "'mixtral-"), std::pair("gemma-7b", "'gemma-"),
        std::pair("lama-3.1-70b", "'llama-3.1-70b'"), std::pair("qwen-70b", "'qwen2")}) {
    EXPECT_NE(hint(name).find(family), std::string::npos) << name << ": " << hint(name);
  }
  for (const char* name : {"nemotron-70b", "command-r-35b", "hunyuan-7b"}) {
    EXPECT_EQ(hint(name).find("did you mean"), std::string::npos) << name << ": " << hint(name);
  }
}

// A release of the same shape is said to be read as it.
TEST_F(FindModel, KnowsReleasesOfTheSameShape) {
  for (const char* name : {"Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"}) {
    const auto model = find_model(name, kShippedModels);
    ASSERT_TRUE(model.has_value()) << to_string(model.error());
    EXPECT_EQ(model->name, "llama-3.1-70b");
    EXPECT_NE(model->reading.find("is read as the shipped llama-3.1-70b"), std::string::npos);
  }
}

TEST_F(FindModel, ReadsTheNamesThatPeopleHaveForIt) {
  const std::pair<const char*, const char*> names[] = {
      {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
      {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
      {"llama3.1-8B", "llama-3.1-8b"},
      {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
      {"google/gemma-3-12b-it", "gemma-3-12b"},
      {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
      {"bigscience/bloom", "bloom-176b"},
  };
  for (const auto& [name, shipped] : names) {
    const auto model = find_model(name, kShippedModels);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(model->name, shipped);
    EXPECT_EQ(model->reading, std::string(name) + " is read as the shipped " + shipped);
  }
  EXPECT_EQ(find_model("llama-3.1-8b", kShippedModels)->reading, "");
}

TEST_F(FindModel, ANameThatFitsSeveralIsRefusedWithThem) {
  const auto model = find_model("llama-8b", kShippedModels);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().front().hint.find("llama-3-8b or llama-3.1-8b"), std::string::npos)
      << model.error().front().hint;
}

TEST_F(FindModel, APathIsNoRepository) {
  for (const char* name : {"./Llama-3.1-8B", "/meta-llama/Llama-3.1-8B", "a/b/Llama-3.1-8B",
                           "meta-llama/Llama-3.1-8B.json"}) {
    EXPECT_FALSE(find_model(name, kShippedModels)) << name;
  }
}

// A name must not mean another model when one more is shipped.
TEST_F(FindModel, EveryShippedModelIsFoundByItsNameInCapitals) {
  const auto entries = list_models(kShippedModels);
  ASSERT_TRUE(entries);
  EXPECT_FALSE(entries->empty());
  for (const ModelEntry& entry : *entries) {
    std::string name = entry.name;
    for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
    const auto model = find_model(name, kShippedModels);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(model->name, entry.name);
  }
}

TEST_F(FindModel, AMissingPathIsNamed) {
  const auto model = find_model(path("nowhere/config.json"), kShippedModels);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().front().code, ErrorCode::kNotFound);
  EXPECT_NE(model.error().front().message.find("nowhere"), std::string::npos);
}

TEST_F(FindModel, ErrorsCarryTheFile) {
  write("bad.json", R"({"model_type": "llama", "hidden_size": 0})");
  const auto model = find_model(path("bad.json"), kShippedModels);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().size(), 3u);
  for (const Error& error : model.error()) EXPECT_EQ(error.file, path("bad.json"));
}

}  // namespace
}  // namespace stepcast
