// SPDX-License-Identifier: Apache-2.0
#include "predict/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/each.h"
#include "core/json_tree.h"
#include "places.h"
#include "predict/mechanisms.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Twenty runs with "a", half of them of each of two sources: errors from -0.1 to 0.28 in equal
// steps. Three with "b" beside it, and six with "c" alone, of one source.
MeasuredErrors some_errors() {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back({{"a"}, -0.1 + 0.02 * i, {}, i % 2 == 0 ? "one" : "two"});
  }
  for (int i = 0; i < 3; ++i) runs.push_back({{"a", "b"}, 0.09, {}, i == 0 ? "one" : "two"});
  for (int i = 0; i < 6; ++i) runs.push_back({{"c"}, 0.5, 0.1, "one"});
  return MeasuredErrors(runs);
}

Interval of(const std::vector<std::string>& mechanisms, double sigma = 0) {
  std::array<Seconds, kCurves> times{};
  times[0] = Seconds(1);
  std::array<double, kCurves> sigmas{};
  sigmas[0] = sigma;
  return interval90(Seconds(2), times, sigmas, mechanisms, some_errors());
}

TEST(MeasuredErrors, ProveWhatEnoughRunsOfTwoSourcesExercised) {
  const MeasuredErrors errors = some_errors();
  EXPECT_EQ(errors.runs(), 29);
  EXPECT_TRUE(errors.proves("a"));
  EXPECT_FALSE(errors.proves("b"));  // three runs
  EXPECT_FALSE(errors.proves("c"));  // one source
  EXPECT_FALSE(errors.proves("d"));
  EXPECT_EQ(errors.doubt("a"), 0);
  EXPECT_EQ(errors.doubt("b"), 1);
  EXPECT_EQ(errors.doubt("c"), 0);  // how publishers differ is in the errors
  EXPECT_EQ(errors.doubt("d"), 1);
  // The means of those with five runs or more: "a" (20 of mean 0.09, and 0.09), "c" 0.5.
  EXPECT_NEAR(errors.of_unknown(), std::sqrt((0.09 * 0.09 + 0.5 * 0.5) / 2), 1e-9);
}

// Runs that have nothing in common count for nothing. Where 20 runs count alike the first stands
// for the first twentieth, so that 0.05 lies between it and the second.
TEST(MeasuredErrors, OfRunsLikeTheScenarioGiveItsBand) {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 20; ++i) runs.push_back({{"a"}, -0.1 + 0.02 * i, {}, "one"});
  for (int i = 0; i < 6; ++i) runs.push_back({{"c"}, 0.5, {}, "one"});
  const MeasuredErrors errors(runs);
  const std::vector<std::string> mechanisms{"a"};
  const auto band = errors.times_near(mechanisms);
  ASSERT_TRUE(band.has_value());
  EXPECT_NEAR(band->low, -0.09, 1e-9);
  EXPECT_NEAR(band->high, 0.27, 1e-9);
  EXPECT_FALSE(errors.times_near(std::vector<std::string>{"d"}).has_value());
  EXPECT_FALSE(errors.memory_near(mechanisms).has_value());
}

// Half of what both rely on counts less than all of it: two to the power of minus four.
TEST(MeasuredErrors, RunsThatShareLessCountLess) {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 5; ++i) runs.push_back({{"a"}, 0.0, {}, "one"});
  for (int i = 0; i < 5; ++i) runs.push_back({{"b"}, 1.0, {}, "one"});
  const std::vector<std::string> both{"a", "b"};
  const auto band = MeasuredErrors(runs).times_near(both);  // all share one of two
  ASSERT_TRUE(band.has_value());
  EXPECT_NEAR(band->low, 0, 1e-9);
  EXPECT_NEAR(band->high, 1, 1e-9);
  for (int i = 0; i < 20; ++i) runs.push_back({{"a", "b"}, 0.5, {}, "one"});
  const auto nearer = MeasuredErrors(runs).times_near(both);
  ASSERT_TRUE(nearer.has_value());
  EXPECT_NEAR(nearer->low, 0.5, 1e-9);
  EXPECT_NEAR(nearer->high, 0.5, 1e-9);
}

// A publisher's hundred runs count ten times as much as the one of another, which is like them: 1 /
// 11 of the weight lies at 0.5, so that nine in ten do not end before it.
TEST(MeasuredErrors, APublisherCountsAsTheRootOfItsRuns) {
  std::vector<MeasuredError> runs(100, {{"a"}, 0.0, {}, "many"});
  const std::vector<std::string> a{"a"};
  EXPECT_NEAR(MeasuredErrors(runs).times_near(a)->high, 0, 1e-9);
  runs.push_back({{"a"}, 0.5, {}, "one"});
  const auto band = MeasuredErrors(runs).times_near(a);
  EXPECT_NEAR(band->low, 0, 1e-9);
  // The middle of the last weight is 1 / 22 before the end, that of the one before 1 / 11 + 1 /
  // 220.
  const double last = 1 - 1.0 / 22, before = 1 - 1.0 / 11 - 1.0 / 220;
  EXPECT_NEAR(band->high, 0.5 * (0.95 - before) / (last - before), 1e-9);
  EXPECT_NEAR(MeasuredErrors(runs).without("many").times_near(a)->low, 0.5, 1e-9);
  EXPECT_EQ(MeasuredErrors(runs).without("one").runs(), 100);
}

// Three runs have both mechanisms; each of the others has half of the pair, the common one.
TEST(MeasuredErrors, NamesTheRunsThatHaveMostInCommon) {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 10; ++i)
    runs.push_back({{"a"}, 0.1, {}, "one", "common/" + std::to_string(i)});
  runs.push_back({{"a", "b"}, -0.2, {}, "one", "rare/0"});
  const MeasuredErrors errors(runs);
  const auto near = errors.nearest({"a", "b"}, 2);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].run, "rare/0");
  EXPECT_EQ(near[0].likeness, 1);
  // a weighs ln 2 of 11 of 11 runs, b ln 12 of one of 11.
  EXPECT_NEAR(near[1].likeness, std::log(2.0) / (std::log(2.0) + std::log(12.0)), 1e-12);
}

TEST(MeasuredErrors, AreReadAsTheyAreWritten) {
  const std::string folder = ::testing::TempDir();
  const std::string text = some_errors().text();
  std::ofstream(folder + "/measured_errors.json") << text;
  const auto read = MeasuredErrors::read(folder);
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->text(), text);
  EXPECT_EQ(read->runs(), 29);
}

TEST(MeasuredErrors, AFileThatNamesWhatItDoesNotListIsRefused) {
  const std::string head = R"({"stepcast_measured_errors":)";
  const std::string lists = R"(2,"made_by":"","sources":["a","b"],"mechanisms":["c","d"],"runs":)";
  const std::vector<std::pair<std::string, std::string>> files{
      {R"(1,"made_by":"","runs":[]})", "format 1 is not read"},
      {lists + R"([{"source":2,"run":["r"],"time":[0.1],"mechanisms":[0]}]})",
       "runs[0] must name its source"},
      {lists + R"([{"source":0,"run":["r"],"time":[0.1],"mechanisms":[1,2]}]})",
       "runs[0] must name its source"},
      {lists + R"([{"source":0,"run":["r"],"time":[0.1],"mechanisms":[1,1]}]})",
       "runs[0] must name its source"},
      {lists + R"([{"source":0,"run":["r"],"time":[0.1,0.2],"mechanisms":[0]}]})",
       "runs[0] has 1 names and 2 times"},
      {R"(2,"made_by":"","sources":["b","a"],"mechanisms":[],"runs":[]})", "must be in order"}};
  const std::string folder = ::testing::TempDir() + "/refused_errors";
  std::filesystem::create_directories(folder);
  for (const auto& [text, words] : each_of(files)) {
    std::ofstream(folder + "/measured_errors.json") << head << text;
    const auto read = MeasuredErrors::read(folder);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_NE(to_string(read.error()).find(words), std::string::npos) << to_string(read.error());
  }
}

TEST(Interval, IsAsWideAsTheErrorsOfRunsLikeTheScenario) {
  const Interval found = of({"a"});
  const auto band = some_errors().times_near(std::vector<std::string>{"a"});
  ASSERT_TRUE(band.has_value());
  EXPECT_NEAR(std::log(found.low.value() / 2), band->low, 1e-9);
  EXPECT_NEAR(std::log(found.high.value() / 2), band->high, 1e-9);
  EXPECT_TRUE(found.unproven.empty());
}

// It widens by the square, and half as far down as up.
TEST(Interval, WhatNoRunProvesWidensTheUpperSideMost) {
  const Interval known = of({"a"}), unknown = of({"a", "d", "e"});
  EXPECT_EQ(unknown.unproven, (std::vector<std::string>{"d", "e"}));
  constexpr double kZ = 1.6448536269514722;
  const double doubt = kZ * some_errors().of_unknown() * std::sqrt(2.0);
  const double up = std::log(known.high.value() / 2), down = std::log(2 / known.low.value());
  EXPECT_NEAR(std::log(unknown.high.value() / 2), std::hypot(up, doubt), 1e-9);
  EXPECT_NEAR(std::log(2 / unknown.low.value()), std::hypot(down, doubt / 2), 1e-9);
}

TEST(Interval, IsNoNarrowerThanTheTypicalErrorOfItsCurves) {
  std::array<Seconds, kCurves> times{};
  times[0] = Seconds(1);
  std::array<double, kCurves> sigmas{};
  sigmas[0] = 0.4;
  const Interval alone = interval90(Seconds(2), times, sigmas, {}, {});
  const double side = std::hypot(0.4, 1.6448536269514722 * 0.03);
  EXPECT_NEAR(std::log(alone.high.value() / 2), side, 1e-9);
  EXPECT_NEAR(std::log(2 / alone.low.value()), side, 1e-9);
}

TEST(Interval, CurvesOfLargeErrorWidenBothSides) {
  const Interval sharp = of({"a"}), blurred = of({"a"}, 0.35);
  EXPECT_LT(blurred.low.value(), sharp.low.value());
  EXPECT_GT(blurred.high.value(), sharp.high.value());
}

TEST(MemoryInterval, HoldsTheAllocatorsMarginAndTheErrorsOfRuns) {
  const MemoryInterval alone = memory_interval90(1'000'000, {"a"}, some_errors());
  EXPECT_NEAR(static_cast<double>(alone.low), 1e6 * std::exp(-0.035), 1);
  EXPECT_NEAR(static_cast<double>(alone.high), 1e6 * std::exp(0.035), 1);
  const MemoryInterval known = memory_interval90(1'000'000, {"c"}, some_errors());
  EXPECT_EQ(known.low, alone.low);  // all six took a tenth more
  EXPECT_NEAR(static_cast<double>(known.high), 1e6 * std::exp(0.1), 1);
}

TEST(Quantile, RunsThroughTheForecastAndTheEndsOfItsInterval) {
  Prediction prediction;
  prediction.step_time = Seconds(2);
  prediction.step_time_low = Seconds(1.9);
  prediction.step_time_high = Seconds(2.5);
  EXPECT_EQ(quantile(prediction, 0.5).value(), 2.0);
  EXPECT_NEAR(quantile(prediction, 0.95).value(), 2.5, 1e-9);
  EXPECT_NEAR(quantile(prediction, 0.05).value(), 1.9, 1e-9);
  double before = 0;
  for (double p = 0.05; p < 0.99; p += 0.05) {
    EXPECT_GT(quantile(prediction, p).value(), before);
    before = quantile(prediction, p).value();
  }
}

// The search cuts by it.
TEST(Quantile, RisesAtLeastAsMuchAsTheSurestForecast) {
  const Interval surest = interval90(Seconds(1), {}, {}, {}, {});
  Prediction prediction;
  prediction.step_time = Seconds(1);
  prediction.step_time_low = surest.low;
  prediction.step_time_high = surest.high;
  for (const double p : {0.5, 0.7, 0.95, 0.99}) {
    EXPECT_LE(least_rise(p), quantile(prediction, p).value() * (1 + 1e-12));
    EXPECT_GE(least_rise(p), 1);
  }
}

std::set<std::string> set_of(const std::vector<std::string>& list) {
  return {list.begin(), list.end()};
}

TEST(Mechanisms, NameWhatTheScenarioReliesOn) {
  testing::GptCase c;
  c.tp = 2;
  c.pp = 2;
  c.dp = 4;
  c.extra_layout = R"(, "overlap": {"grad_reduce": true})";
  const auto has = [&](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto list = mechanisms_of(testing::gpt(c));
  EXPECT_TRUE(has(list, "megatron: tensor parallelism"));
  EXPECT_TRUE(has(list, "megatron: pipeline"));
  EXPECT_TRUE(has(list, "megatron: gradients reduced beside the backward"));
  EXPECT_TRUE(has(list, "unfused attention"));
  EXPECT_FALSE(has(list, "megatron: overlapped tensor parallelism"));
  EXPECT_FALSE(has(list, "tensor parallelism across the network"));
  EXPECT_EQ(set_of(list).size(), list.size());
}

// The suites have runs of 512 to 262,144 tokens, of the longest one alone.
TEST(Mechanisms, LengthsThatNoRunHadAreProvenByNone) {
  const auto errors = MeasuredErrors::read(source_folder() + "/calibrate/profiles");
  ASSERT_TRUE(errors.has_value()) << to_string(errors.error());
  const auto unproven = [&](std::int64_t length) {
    testing::GptCase c;
    Scenario scenario = testing::gpt(c);
    scenario.training.sequence_length = length;
    std::vector<std::string> out;
    for (const std::string& name : mechanisms_of(scenario)) {
      if (name.starts_with("sequences of") && !errors->proves(name)) out.push_back(name);
    }
    return out;
  };
  EXPECT_EQ(unproven(256).size(), 1u);
  for (const std::int64_t length : {512, 4096, 16384, 65536}) {
    EXPECT_TRUE(unproven(length).empty()) << length;
  }
  EXPECT_EQ(unproven(262144).size(), 1u);
  EXPECT_EQ(unproven(1048576).size(), 2u);
  EXPECT_EQ(unproven(4194304).size(), 3u);
}

// Errors are found by the words of their mechanisms: reworded there alone, they count for nothing.
TEST(Mechanisms, OfRecordedRunsAreThoseThatTheShippedErrorsName) {
  const std::string root = source_folder();
  std::set<std::string> made;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/suites")) {
    if (entry.path().extension() != ".json") continue;
    const auto suite = JsonDocument::load(entry.path().string());
    ASSERT_TRUE(suite.has_value()) << to_string(suite.error());
    for (const auto& recorded : (*suite)->root().raw().at("cases")) {
      if (recorded.contains("collective")) continue;
      const auto document = JsonDocument::from(recorded.at("scenario"), "scenario");
      const auto scenario = read_scenario(*document, testing::source_folders());
      if (scenario) made.merge(set_of(mechanisms_of(*scenario)));
    }
  }
  const auto bands = JsonDocument::load(root + "/calibrate/profiles/measured_errors.json");
  ASSERT_TRUE(bands.has_value()) << to_string(bands.error());
  std::set<std::string> named;
  for (const auto& name : (*bands)->root().raw().at("mechanisms")) {
    named.insert(name.get<std::string>());
  }
  EXPECT_GT(named.size(), 60u);
  for (const std::string& name : named) {
    EXPECT_TRUE(made.contains(name)) << "no recorded run relies on '" << name << "'";
  }
}

}  // namespace
}  // namespace stepcast
