// SPDX-License-Identifier: Apache-2.0
// plan --open: a fixed layout is searched again, and its place is told.
#include "cli/program.h"

namespace stepcast::testing {
namespace {

std::string scenario_with(const std::string& layout) {
  return R"({"stepcast": 1, "model": "gpt3-1.3b", "cluster": {"base": "dgx-a100-80g", "gpus": 8},
    "training": {"global_batch": 32, "sequence_length": 2048}, "layout": )" +
         layout + "}";
}

class PlanOpen : public ::testing::Test {
 protected:
  std::string write(const std::string& layout) {
    write_file(folder_ / "mine.json", scenario_with(layout));
    return folder_ / "mine.json";
  }
  // The layout that a plan without any stated key puts first, as a file states it.
  std::string best() {
    const Outcome free = run({"plan", write("{}"), "--format", "json"});
    EXPECT_EQ(free.code, 0) << free.error;
    step_time_ = free.json()["plans"][0]["prediction"]["step_time_s"];
    return free.json()["plans"][0]["layout"].dump();
  }
  const Folder folder_;
  double step_time_ = 0;  // of best()
};

constexpr const char* kWasteful = R"({"tp": 4, "pp": 2, "dp": 1, "micro_batch": 1, "zero": 0,
    "recompute": "full", "overlap": {"grad_reduce": false}})";

TEST_F(PlanOpen, SearchesTheKeysAndSaysHowFarTodaysLayoutIsBehind) {
  const std::string file = write(kWasteful);
  const Outcome today = run({"predict", file, "--format", "json"});
  ASSERT_EQ(today.code, 0) << today.error;
  const Outcome plan = run({"plan", file, "--open", "tp,pp,vpp,recompute", "--format", "json"});
  ASSERT_EQ(plan.code, 0) << plan.error;
  const auto answer = plan.json();
  const double first = answer["plans"][0]["prediction"]["step_time_s"];
  const double now = today.json()["step_time_s"];
  EXPECT_EQ(answer["today"]["step_time_s"], now);
  EXPECT_LT(first, now);
  EXPECT_NEAR(answer["today"]["behind_first"], now / first - 1, 1e-9);
  EXPECT_TRUE(answer["today"]["place"].is_null());
  EXPECT_TRUE(answer["today"]["fits"]);
  // A key that was not opened stays as the file has it.
  EXPECT_EQ(answer["plans"][0]["layout"]["zero"], 0);
  const Outcome table = run({"plan", file, "--open", "tp,pp,vpp,recompute"});
  EXPECT_TRUE(has(table.out, "today's layout takes ")) << table.out;
}

TEST_F(PlanOpen, AllOpensEveryKeyThatNoFlagFixes) {
  const std::string file = write(kWasteful);
  const Outcome all = run({"plan", file, "--open", "all", "--format", "json"});
  ASSERT_EQ(all.code, 0) << all.error;
  const Outcome free = run({"plan", write("{}"), "--format", "json"});
  ASSERT_EQ(free.code, 0) << free.error;
  EXPECT_EQ(all.json()["plans"], free.json()["plans"]);
  const Outcome fixed =
      run({"plan", write(kWasteful), "--open", "all", "--tp", "8", "--format", "json"});
  ASSERT_EQ(fixed.code, 0) << fixed.error;
  EXPECT_EQ(fixed.json()["plans"][0]["layout"]["tp"], 8);
}

// The best layout that was found is the best again when it is today's.
TEST_F(PlanOpen, TheBestLayoutIsItsOwnFirstPlace) {
  const Outcome again = run({"plan", write(best()), "--open", "all", "--format", "json"});
  ASSERT_EQ(again.code, 0) << again.error;
  const auto today = again.json()["today"];
  EXPECT_EQ(today["step_time_s"], step_time_);
  EXPECT_EQ(today["behind_first"], 0);
}

// However short the search, it begins with what the file states.
TEST_F(PlanOpen, TheFirstPlaceIsNeverSlowerThanTodays) {
  const std::string file = write(best());
  for (const char* replays : {"1", "2", "8"}) {
    const Outcome shortened =
        run({"plan", file, "--open", "all", "--replays", replays, "--format", "json"});
    ASSERT_EQ(shortened.code, 0) << shortened.error;
    EXPECT_EQ(shortened.json()["plans"][0]["prediction"]["step_time_s"], step_time_) << replays;
  }
}

TEST_F(PlanOpen, RefusesWhatNoSearchVariesAndWhatAFlagFixes) {
  const std::string file = write(kWasteful);
  const Outcome unknown = run({"plan", file, "--open", "tpp"});
  expect_refused(unknown);
  EXPECT_TRUE(has(unknown.error, "--open: 'tpp' is no key that a search varies")) << unknown.error;
  const Outcome fixed = run({"plan", file, "--open", "tp", "--tp", "4"});
  expect_refused(fixed);
  EXPECT_TRUE(has(fixed.error, "--open: a flag fixes layout.tp")) << fixed.error;
}

TEST_F(PlanOpen, AWhollyFixedScenarioIsToldOfIt) {
  const Outcome fixed = run({"plan", write(best())});
  EXPECT_EQ(fixed.code, 0) << fixed.error;
  EXPECT_TRUE(has(fixed.error, "--open all searches them")) << fixed.error;
  EXPECT_FALSE(has(run({"plan", write(kWasteful)}).error, "--open"));
}

}  // namespace
}  // namespace stepcast::testing
