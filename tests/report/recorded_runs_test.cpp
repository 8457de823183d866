// SPDX-License-Identifier: Apache-2.0
// Recorded runs beside a forecast: the nearest, and the mechanisms that forecasts missed.
#include "report/recorded_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "predict/mechanisms.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Scenario some_scenario() {
  return testing::scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100",
          "training": {"global_batch": 64, "sequence_length": 4096}, "layout": {"tp": 2}})");
}

TEST(RecordedRuns, AreNamedWithTheirErrorsAndTheMechanismsThatForecastsMissed) {
  const Scenario scenario = some_scenario();
  const std::vector<std::string> mine = mechanisms_of(scenario);
  ASSERT_GT(mine.size(), 2u);
  std::vector<MeasuredError> runs;
  runs.push_back({mine, std::log(1 / 1.02), {}, "one", "ours/a"});  // forecast 2 % too long
  runs.push_back({mine, std::log(1 / 0.97), {}, "two", "ours/b"});  // 3 % too short
  // Two runs that share one mechanism took half as long again.
  for (const char* name : {"ours/c", "ours/d"}) {
    runs.push_back({{mine.front(), "of others", "of still others", "of more"},
                    std::log(1.5),
                    {},
                    "two",
                    name});
  }
  const RecordedRuns found = recorded_runs(scenario, MeasuredErrors(runs));
  ASSERT_EQ(found.nearest.size(), 2u);  // the others have less than half in common
  EXPECT_EQ(found.nearest[0].run, "ours/a");
  EXPECT_NEAR(found.nearest[0].error, 0.02, 1e-4);  // logarithms are kept to four decimals
  EXPECT_EQ(found.nearest[0].otherwise, "");
  EXPECT_NEAR(found.nearest[1].error, -0.03, 1e-4);
  // The mean of ln(1/1.02), ln(1/0.97) and twice ln(1.5).
  ASSERT_EQ(found.mechanisms.size(), 1u);
  EXPECT_EQ(found.mechanisms[0].name, mine.front());
  EXPECT_EQ(found.mechanisms[0].runs, 4);
  const double mean = (std::log(1 / 1.02) + std::log(1 / 0.97) + 2 * std::log(1.5)) / 4;
  EXPECT_NEAR(found.mechanisms[0].error, std::exp(-mean) - 1, 1e-4);
  EXPECT_EQ(recorded_runs_text(found),
            "forecasts were off by -3.0 % to +2.0 % for the 2 recorded runs most like it; by "
            "-18.6 % in the mean of 4 runs with " +
                mine.front());
  const auto object = recorded_runs_object(found);
  EXPECT_EQ(object["nearest"].size(), 2u);
  EXPECT_EQ(object["mechanisms"][0]["runs"], 4);
}

TEST(RecordedRuns, AreNoneWhereNothingIsAlike) {
  const std::vector<MeasuredError> runs{{{"of others"}, 0.5, {}, "one", "ours/a"}};
  const RecordedRuns found = recorded_runs(some_scenario(), MeasuredErrors(runs));
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(recorded_runs_text(found), "");
  EXPECT_EQ(recorded_runs_table(found, Form::kText).text(), "");
}

TEST(RecordedRuns, OfTheShippedSuitesStandBesideAForecast) {
  const auto shipped = MeasuredErrors::read(testing::source_folders().profiles);
  ASSERT_TRUE(shipped.has_value());
  const RecordedRuns found = recorded_runs(some_scenario(), *shipped);
  ASSERT_EQ(found.nearest.size(), 4u);
  for (const RecordedRun& run : found.nearest) {
    EXPECT_NE(run.run.find('/'), std::string::npos) << run.run;
    EXPECT_GE(run.likeness, 0.5) << run.run;
  }
}

}  // namespace
}  // namespace stepcast
