// SPDX-License-Identifier: Apache-2.0
// Random legal scenarios, and what must hold for each of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/program.h"
#include "core/text/escape.h"
#include "generate/hunt.h"
#include "generate/shrink.h"
#include "layout/data_folders.h"
#include "layout/keys.h"
#include "predict/prediction.h"

namespace stepcast::generate {
namespace {

constexpr std::uint64_t kSeed = 20261125;

std::vector<const Property*> all_properties() {
  std::vector<const Property*> out;
  for (const Property& property : properties()) out.push_back(&property);
  return out;
}

std::string told(const Violation& found) {
  const LegalScenario smallest = shrunk(found.scenario, *found.property, 200);
  return fmt::format("{}: {}\n{}", found.property->says, found.verdict.what,
                     command_line(smallest, found.verdict.flags, ::testing::TempDir(),
                                  fmt::format("{}-{}", found.property->name, smallest.index)));
}

constexpr std::uint64_t kAll = 250;  // `hunt_scenarios` draws more
// Address sanitizers make a forecast some ten times as long, so a fifth of them has to do there.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kScenarios = kAll / 5;  // g++
#elif defined(__has_feature)
constexpr std::uint64_t kScenarios = __has_feature(address_sanitizer) ? kAll / 5 : kAll;
#else
constexpr std::uint64_t kScenarios = kAll;
#endif

TEST(LegalScenarios, HoldEveryProperty) {
  HuntOptions options;
  options.seed = kSeed;
  options.count = kScenarios;
  options.properties = all_properties();
  const HuntResult result = hunt(options);
  EXPECT_EQ(result.scenarios, kScenarios);
  for (const Violation& found : result.violations) ADD_FAILURE() << told(found);
  // The draw is made so that most of what it makes is legal.
  EXPECT_LE(result.attempts, 2 * result.scenarios);
  if (kScenarios < kAll) return;  // too few to count
  for (const Property* property : options.properties) {
    const Tally& tally = result.tallies.at(property->name);
    EXPECT_GE(tally.asked, kScenarios / property->every) << property->name;
    EXPECT_GE(100 * tally.applied, std::max(kAll / 5, tally.asked * property->in_hundred))
        << property->name << " applies to " << tally.applied << " of " << tally.asked;
    EXPECT_LE(20 * tally.excepted, tally.applied) << property->name;
  }
}

constexpr std::uint64_t kOnePercent = 10;  // of a thousand

// Drawn, and nothing asked of them: a thousand take a second or two.
HuntResult thousand_scenarios() {
  HuntOptions options;
  options.seed = kSeed;
  options.count = 1000;
  return hunt(options);
}

TEST(Draw, StatesEveryKeyOfTheProduct) {
  const HuntResult result = thousand_scenarios();
  ASSERT_FALSE(keys().empty());
  for (const Key* key : keys()) {
    const auto found = result.keys.find(key->path);
    EXPECT_GE(found == result.keys.end() ? 0u : found->second, kOnePercent) << key->path;
  }
}

TEST(Draw, HasEveryScheduleFrameworkDispatcherAndKindOfCluster) {
  const HuntResult result = thousand_scenarios();
  for (const std::string& choice : all_choices()) {
    const auto found = result.choices.find(choice);
    EXPECT_GE(found == result.choices.end() ? 0u : found->second, kOnePercent) << choice;
  }
}

// Keys of models are no keys of the product: those of experts' kernels and buffers are counted
// here.
TEST(Draw, StatesKernelsAndBuffersOfExperts) {
  int fused = 0, sized = 0, stashed = 0;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const LegalScenario drawn = draw_scenario(kSeed, index);
    const std::optional<Moe>& moe = drawn.scenario.model.moe;
    if (!moe) continue;
    fused += moe->fused_mlp ? 1 : 0;
    sized += moe->rank_capacity_factor > 0 ? 1 : 0;
    stashed += moe->stash_factor > 0 ? 1 : 0;
  }
  EXPECT_GE(fused, 5);
  EXPECT_GE(sized, 5);
  EXPECT_GE(stashed, 5);
}

TEST(Draw, GivesTheSameScenarioForTheSameSeed) {
  for (std::uint64_t index = 0; index < 20; ++index) {
    EXPECT_EQ(draw_scenario(3, index).text, draw_scenario(3, index).text);
    EXPECT_NE(draw_scenario(3, index).text, draw_scenario(4, index).text);
  }
}

// A property that no layout with two tensor parallel ranks holds: what is left is the two ranks.
TEST(Shrinking, EndsWithTheKeysThatMatter) {
  const Property property{"tp", "there is no tensor parallelism", [](Case& c) {
                            return c.scenario().layout.tp > 1 ? violated("tp") : holds();
                          }};
  int shown = 0;
  for (std::uint64_t index = 0; index < 20; ++index) {
    const LegalScenario drawn = draw_scenario(kSeed, index);
    if (drawn.scenario.layout.tp == 1) continue;
    const LegalScenario smallest = shrunk(drawn, property);
    EXPECT_GT(smallest.scenario.layout.tp, 1) << smallest.text;
    EXPECT_LE(smallest.text.size(), 250u) << smallest.text;
    ++shown;
  }
  EXPECT_GE(shown, 3);
}

// The program reads the words as the scenario that they are of, and prints what the library says.
TEST(CommandWords, MakeTheProgramPrintTheSameForecast) {
  int by_words = 0;
  for (std::uint64_t index = 0; index < 12; ++index) {
    const LegalScenario drawn = draw_scenario(kSeed + 1, index);
    std::vector<std::string> words = command_words(drawn);
    if (words.empty() || drawn.text.find('\'') != std::string::npos) continue;
    words.insert(words.end(), {"--format", "json"});
    const testing::Outcome outcome = testing::run(words);
    PredictOptions options;
    options.collectives = true;  // which the program's JSON lists
    const auto prediction = predict(drawn.scenario, source_folders(), options);
    ASSERT_TRUE(prediction) << drawn.text;
    const auto document = document_of(drawn.scenario, *prediction);
    EXPECT_EQ(outcome.code, document["fits"] == true ? 0 : 3) << outcome.error << drawn.text;
    auto printed = nlohmann::ordered_json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(printed.is_object()) << outcome.out.substr(0, 500);
    EXPECT_EQ(printed.erase("recorded_runs"), 1U);  // which are no part of the forecast itself
    EXPECT_EQ(printed.dump(2), document.dump(2)) << drawn.text;
    ++by_words;
  }
  EXPECT_GE(by_words, 6);
}

}  // namespace
}  // namespace stepcast::generate
