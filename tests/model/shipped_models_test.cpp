// SPDX-License-Identifier: Apache-2.0
// Every shipped model against the parameter count that its source states.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/each.h"
#include "core/json.h"
#include "model/import_model.h"
#include "model/model.h"
#include "model/shipped_folder.h"

namespace stepcast {
namespace {

std::vector<ModelEntry> entries() {
  auto list = list_models(kShippedModels);
  EXPECT_TRUE(list) << to_string(list.error());
  return list ? *list : std::vector<ModelEntry>{};
}

// The parameters that a model's source states: exactly, or rounded as in "70.6B".
struct Stated {
  std::int64_t exact = 0;  // 0: only rounded
  std::string rounded;
};

Stated stated_by_source(const std::string& name) {
  const auto document = JsonDocument::load(kShippedModels + "/" + name + ".json");
  EXPECT_TRUE(document) << name;
  if (!document) return {};
  ObjectReader reader((*document)->root());
  const Stated out{reader.integer("published_parameters", 1).value_or(0),
                   reader.text("published").value_or("")};
  EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
  return out;
}

// Leaves out multi-token prediction, as the library's classes do, and so the published counts.
std::int64_t main_parameters(const std::string& name) {
  const auto model = find_model(name, kShippedModels);
  EXPECT_TRUE(model) << to_string(model.error());
  if (!model) return 0;
  const ParameterCount count = count_parameters(*model);
  return count.total() - count.mtp;
}

// "18.4B": the value and half a unit of its last digit.
struct Printed {
  double value = 0;
  double half_unit = 0;
};

Printed parse_printed(const std::string& text) {
  const double scale = text.back() == 'B' ? 1e9 : 1e6;
  const std::string digits = text.substr(0, text.size() - 1);
  const std::size_t point = digits.find('.');
  const std::size_t decimals = point == std::string::npos ? 0 : digits.size() - point - 1;
  return {std::stod(digits) * scale, 0.5 * scale * std::pow(10.0, -static_cast<double>(decimals))};
}

TEST(ShippedModels, CountExactlyAsPublishedWhereTheSourceIsExact) {
  int exact = 0;
  for (const ModelEntry& entry : each_of(entries())) {
    const Stated stated = stated_by_source(entry.name);
    if (stated.exact == 0) continue;
    EXPECT_EQ(main_parameters(entry.name), stated.exact) << entry.name;
    ++exact;
  }
  EXPECT_GE(exact, 40);
}

TEST(ShippedModels, AgreeToThePrintedDigitsWhereTheSourceIsRounded) {
  int rounded = 0;
  for (const ModelEntry& entry : each_of(entries())) {
    const Stated stated = stated_by_source(entry.name);
    if (stated.rounded.empty()) continue;
    const Printed printed = parse_printed(stated.rounded);
    EXPECT_NEAR(static_cast<double>(main_parameters(entry.name)), printed.value, printed.half_unit)
        << entry.name << " " << stated.rounded;
    ++rounded;
  }
  EXPECT_GE(rounded, 15);
}

TEST(ShippedModels, AllLoadUnderTheirNameAndNameASource) {
  for (const ModelEntry& entry : each_of(entries())) {
    const auto model = find_model(entry.name, kShippedModels);
    ASSERT_TRUE(model) << to_string(model.error());
    EXPECT_EQ(model->name, entry.name);
    EXPECT_GT(count_parameters(*model).total(), 0);
    EXPECT_FALSE(entry.source.empty());
  }
}

TEST(ShippedModels, CoverEveryFamilyOfTheDocumentation) {
  std::set<std::string> names;
  for (const ModelEntry& entry : each_of(entries())) names.insert(entry.name);
  for (const char* name :
       {"gpt2-xl",        "gpt3-175b",    "megatron-1t",     "opt-66b",       "bloom-176b",
        "mpt-7b",         "gpt-neox-20b", "llama-65b",       "llama-2-70b",   "llama-3-70b",
        "llama-3.1-405b", "llama-3.2-1b", "mistral-7b",      "mixtral-8x22b", "qwen2-72b",
        "qwen2.5-32b",    "qwen3-32b",    "qwen3-235b-a22b", "deepseek-v2",   "deepseek-v3",
        "gemma-2-27b",    "gemma-3-27b",  "phi-3-mini",      "gpt-oss-120b",  "olmo-2-7b"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

// The checkpoints of DeepSeek-R1 (684,489,845,504) and GLM-4.5 (358,337,791,296), GLM-4.5-Air
// (110,468,824,832) hold the module of multi-token prediction, with its own copies of embedding
// and head, which training shares.
TEST(ShippedModels, CountTheMultiTokenPredictionModulesOfPublishedCheckpoints) {
  const std::pair<const char*, std::int64_t> checkpoints[] = {
      {"deepseek-v3", 684489845504}, {"glm-4.5", 358337791296}, {"glm-4.5-air", 110468824832}};
  for (const auto& [name, elements] : checkpoints) {
    const auto model = find_model(name, kShippedModels);
    ASSERT_TRUE(model);
    const std::int64_t copies = 2 * model->vocab * model->hidden;
    EXPECT_EQ(count_parameters(*model).total() + copies, elements) << name;
  }
}

// Model cards: gpt-oss counts the head but not the embedding as active (arXiv:2508.10925, table
// 1), and so does DeepSeek-V3 (README_WEIGHTS: 36.6B); Qwen3 counts both.
TEST(ShippedModels, ActiveParametersAgreeWithTheModelCards) {
  const auto active = [](const char* name, bool with_embedding) {
    const auto model = find_model(name, kShippedModels);
    const ParameterCount count = count_parameters(*model);
    return static_cast<double>(count.active - (with_embedding ? 0 : count.embedding)) / 1e9;
  };
  EXPECT_NEAR(active("gpt-oss-120b", false), 5.13, 0.005);
  EXPECT_NEAR(active("gpt-oss-20b", false), 3.61, 0.005);
  EXPECT_NEAR(active("deepseek-v3", false), 36.6, 0.05);
  EXPECT_NEAR(active("deepseek-v2", true), 21, 0.5);
  EXPECT_NEAR(active("qwen3-235b-a22b", true), 22, 0.5);
  EXPECT_NEAR(active("mixtral-8x7b", true), 12.9, 0.05);
}

}  // namespace
}  // namespace stepcast
