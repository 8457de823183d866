// SPDX-License-Identifier: Apache-2.0
#include "predict/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "predict/mechanisms.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Ten runs with "a": errors from -0.1 to 0.35 in equal steps; three with "b".
MeasuredErrors some_errors() {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 10; ++i) runs.push_back({{"a"}, -0.1 + 0.05 * i});
  for (int i = 0; i < 3; ++i) runs.push_back({{"a", "b"}, 0.125});
  return MeasuredErrors(runs);
}

Interval of(const std::vector<std::string>& mechanisms, double sigma = 0) {
  std::array<Seconds, kCurves> times{};
  times[0] = Seconds(1);
  std::array<double, kCurves> sigmas{};
  sigmas[0] = sigma;
  return interval90(Seconds(2), times, sigmas, mechanisms, some_errors());
}

TEST(MeasuredErrors, BandsHoldNineOfTenErrors) {
  const MeasuredErrors errors = some_errors();
  const ErrorBand* band = errors.find("a");
  ASSERT_NE(band, nullptr);
  EXPECT_EQ(band->runs, 13);
  EXPECT_NEAR(band->low, -0.07, 1e-9);  // 0.6 of the way from the first to the second of 13
  EXPECT_NEAR(band->high, 0.32, 1e-9);
  EXPECT_EQ(errors.find("b"), nullptr);  // three runs say too little
  EXPECT_NEAR(errors.of_unknown(), 0.125, 1e-9);
}

// Three runs have both mechanisms; each of the others has half of the pair, the common one.
TEST(MeasuredErrors, NamesTheRunsThatHaveMostInCommon) {
  std::vector<MeasuredError> runs;
  for (int i = 0; i < 10; ++i) runs.push_back({{"a"}, 0.1, "common/" + std::to_string(i)});
  runs.push_back({{"a", "b"}, -0.2, "rare/0"});
  const MeasuredErrors errors(runs);
  const auto near = errors.nearest({"a", "b"}, 2);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].run->run, "rare/0");
  EXPECT_EQ(near[0].likeness, 1);
  // a weighs ln 2 of 11 of 11 runs, b ln 12 of one of 11.
  EXPECT_NEAR(near[1].likeness, std::log(2.0) / (std::log(2.0) + std::log(12.0)), 1e-12);
}

TEST(Interval, IsAsWideAsTheErrorsOfTheSameMechanisms) {
  const Interval found = of({"a"});
  EXPECT_NEAR(std::log(found.low.value() / 2), -0.07, 1e-9);
  EXPECT_NEAR(std::log(found.high.value() / 2), 0.32, 1e-9);
  EXPECT_TRUE(found.unproven.empty());
}

TEST(Interval, WhatNoRunExercisedAddsTimeOnly) {
  const Interval known = of({"a"}), unknown = of({"a", "b", "c"});
  EXPECT_EQ(unknown.unproven, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(unknown.low.value(), known.low.value());
  constexpr double kZ = 1.6448536269514722;
  EXPECT_NEAR(std::log(unknown.high.value() / 2), std::hypot(0.32, kZ * 0.125 * std::sqrt(2.0)),
              1e-9);
}

TEST(Interval, CurvesOfLargeErrorWidenBothSides) {
  const Interval sharp = of({"a"}), blurred = of({"a"}, 0.2);
  EXPECT_LT(blurred.low.value(), sharp.low.value());
  EXPECT_GT(blurred.high.value(), sharp.high.value());
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

// A band is found by the words of its mechanism: reworded there alone, its runs count for nothing.
TEST(Mechanisms, OfRecordedRunsAreThoseThatTheShippedBandsName) {
  const std::string root = STEPCAST_SOURCE_DIR;
  std::set<std::string> made;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/suites")) {
    if (entry.path().extension() != ".json") continue;
    const auto suite = JsonDocument::load(entry.path().string());
    ASSERT_TRUE(suite.has_value()) << to_string(suite.error());
    for (const auto& recorded : (*suite)->root().raw().at("cases")) {
      const auto document = JsonDocument::from(recorded.at("scenario"), "scenario");
      const auto scenario = read_scenario(*document, testing::source_folders());
      if (scenario) made.merge(set_of(mechanisms_of(*scenario)));
    }
  }
  const auto bands = JsonDocument::load(root + "/calibrate/profiles/measured_errors.json");
  ASSERT_TRUE(bands.has_value()) << to_string(bands.error());
  std::set<std::string> named;
  for (const auto& band : (*bands)->root().raw().at("mechanisms")) {
    named.insert(band.at("name").get<std::string>());
  }
  EXPECT_GT(named.size(), 60u);
  for (const std::string& name : named) {
    EXPECT_TRUE(made.contains(name)) << "no recorded run relies on '" << name << "'";
  }
}

}  // namespace
}  // namespace stepcast
