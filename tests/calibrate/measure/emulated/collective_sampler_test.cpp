// SPDX-License-Identifier: Apache-2.0
// The protocol of measured communication, on transfers that take what the test says.
#include "calibrate/measure/collective_sampler.h"

#include <gtest/gtest.h>

#include <map>

#include "core/json_tree.h"
#include "core/temporary_folder.h"

namespace stepcast {
namespace {

constexpr double kSpeed = 1e5;  // bytes per second of every transfer

// One rank of several; it also plays the others.
class FakeTransfers final : public CollectiveBackend {
 public:
  std::vector<Curve> curves() const override {
    return {{"all_reduce", {1000, 2000, 4000}}, {"all_gather", {1000, 2000}}};
  }
  Meeting meet(std::size_t curve) override {
    collective_ = curves()[curve].collective;
    return {true, is_first, {0, 0, 1, 1}, 1};
  }
  std::string key_of(ByteCount bytes) const override {
    return collective_ + " " + std::to_string(bytes);
  }
  void begin_size(ByteCount) override { ++sizes_begun; }
  Sample sample(ByteCount bytes) override {
    ++samples[key_of(bytes)];
    Sample out;
    out.seconds = static_cast<double>(bytes) / kSpeed;
    now_s += out.seconds;
    if (throttled > 0) {
      --throttled;
      out.seconds *= 2;
      out.disturbance.throttle_events = 1;
    }
    return out;
  }
  SortedJson facts_of_size() const override { return SortedJson::object(); }
  bool has_sharing() const override { return shares; }
  double longest_sharing_s() const override { return 0.03; }
  SortedJson sharing(ByteCount bytes, double alone_s) override {
    return {{"stretch", 1.5}, {"at", bytes}, {"alone_s", alone_s}};
  }
  bool on_any_rank(bool here) override {
    // Another rank that lacks its first points, or goes on for some samples more.
    if (others_say_yes > 0) return --others_say_yes, true;
    return here;
  }

  std::map<std::string, int> samples;
  int sizes_begun = 0, throttled = 0, others_say_yes = 0;
  bool is_first = true, shares = false;
  double now_s = 0;

 private:
  std::string collective_;
};

class CollectiveSampling : public ::testing::Test {
 protected:
  Json measure(FakeTransfers& transfers, double budget_s = 0) {
    auto journal = Journal::open(folder_ / "rank-0.jsonl", {{"machine", "test"}});
    EXPECT_TRUE(journal);
    RankReporter report(0, -1);
    CollectiveSampler sampler(job_, report, *journal, transfers,
                              {budget_s, [&transfers] { return transfers.now_s; }});
    Json out = Json::array();
    sampler.measure(out);
    left_out_ = sampler.left_out();
    return out;
  }

  testing::TemporaryFolder folder_;
  Job job_;
  std::int64_t left_out_ = 0;
};

TEST_F(CollectiveSampling, TellsTheTimeOfEverySize) {
  FakeTransfers transfers;
  const Json out = measure(transfers);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0]["collective"], "all_reduce");
  EXPECT_EQ(out[0]["placement"], Json({0, 0, 1, 1}));
  EXPECT_EQ(out[0]["concurrent"], 1);
  ASSERT_EQ(out[0]["points"].size(), 3U);
  for (const auto& point : out[0]["points"]) {
    EXPECT_DOUBLE_EQ(point["measurement"]["median_s"].get<double>(),
                     point["bytes"].get<double>() / kSpeed);
    EXPECT_GE(point["measurement"]["n"].get<int>(), 4);
  }
}

TEST_F(CollectiveSampling, OnlyTheFirstMemberTells) {
  FakeTransfers transfers;
  transfers.is_first = false;
  EXPECT_TRUE(measure(transfers).empty());
  EXPECT_EQ(transfers.sizes_begun, 5);
}

TEST_F(CollectiveSampling, GoesOnFromTheJournal) {
  FakeTransfers first, second;
  const Json once = measure(first);
  const Json again = measure(second);
  EXPECT_EQ(again, once);
  EXPECT_EQ(second.sizes_begun, 0);
}

TEST_F(CollectiveSampling, APointThatAnotherRankLacksIsMeasuredByAll) {
  FakeTransfers first, second;
  measure(first);
  second.others_say_yes = 1;  // asked about the first point
  measure(second);
  EXPECT_EQ(second.sizes_begun, 1);
  EXPECT_EQ(second.samples.count("all_reduce 1000"), 1U);
}

TEST_F(CollectiveSampling, AllMembersSampleUntilTheLastHasEnough) {
  FakeTransfers alone;
  measure(alone);
  testing::TemporaryFolder other;
  auto journal = Journal::open(other / "rank-0.jsonl", {{"machine", "test"}});
  RankReporter report(0, -1);
  FakeTransfers slow;
  slow.others_say_yes = 200;
  CollectiveSampler sampler(job_, report, *journal, slow);
  Json out = Json::array();
  sampler.measure(out);
  EXPECT_GT(slow.samples["all_reduce 1000"], alone.samples["all_reduce 1000"]);
}

TEST_F(CollectiveSampling, WhatTheBudgetLeavesOutIsCounted) {
  FakeTransfers transfers;
  const Json out = measure(transfers, 1e-9);  // spent with the first sample
  EXPECT_EQ(left_out_, 4);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0]["points"].size(), 1U);
  // The next run has its own budget, and does not measure the first point again.
  FakeTransfers rest;
  const Json more = measure(rest, 1e3);
  EXPECT_EQ(left_out_, 0);
  EXPECT_EQ(rest.sizes_begun, 4);
  EXPECT_EQ(more[0]["points"].size(), 3U);
}

TEST_F(CollectiveSampling, SamplesUnderAThrottledClockAreLeftOut) {
  FakeTransfers transfers;
  transfers.throttled = 6;
  const Json out = measure(transfers);
  const auto& measured = out[0]["points"][0]["measurement"];
  EXPECT_DOUBLE_EQ(measured["median_s"].get<double>(), 1000 / kSpeed);
  EXPECT_GE(measured["rejected"]["throttled"].get<int>(), 1);
}

TEST_F(CollectiveSampling, SharingIsMeasuredAtTheLargestSizeThatIsNotTooLong) {
  FakeTransfers transfers;
  transfers.shares = true;
  const Json out = measure(transfers);  // 4000 bytes take 40 ms, the limit is 30
  EXPECT_EQ(out[0]["at"], 2000);
  EXPECT_DOUBLE_EQ(out[0]["alone_s"].get<double>(), 0.02);
  EXPECT_EQ(out[1]["at"], 2000);
  EXPECT_EQ(out[0]["stretch"], 1.5);
}

}  // namespace
}  // namespace stepcast
