// SPDX-License-Identifier: Apache-2.0
#include "acceptance/thresholds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "acceptance/judge_results.h"
#include "acceptance/threshold_file.h"
#include "core/each.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Scenario scenario(const std::string& layout = R"("tp": 4)") {
  return testing::scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": "dgx-h100x2", "training":
          {"global_batch": 32, "sequence_length": 4096}, "layout": {)" +
      layout + "}}");
}

Thresholds thresholds_of(const Scenario& of) {
  auto out = make_thresholds(of, testing::source_folders());
  EXPECT_TRUE(out.has_value()) << to_string(out.error());
  return out ? std::move(*out) : Thresholds{};
}

const CollectiveThreshold& threshold_over(const Thresholds& all, const std::string& group) {
  const auto found = std::ranges::find(all.collectives, group, &CollectiveThreshold::group);
  EXPECT_NE(found, all.collectives.end()) << group;
  return *found;
}

TEST(Thresholds, AreTheEndOfTheIntervalAndATenthLessBandwidth) {
  const Scenario of = scenario();
  const Thresholds out = thresholds_of(of);
  const auto prediction = predict(of, testing::source_folders());
  ASSERT_TRUE(prediction.has_value());
  EXPECT_EQ(out.most_step_s, prediction->step_time_high.value());
  EXPECT_NEAR(out.least_tokens_per_s, 32.0 * 4096 / out.most_step_s, 1e-6);
  for (const CollectiveThreshold& one : each_of(out.collectives)) {
    EXPECT_NEAR(one.least_bus_bytes_per_s, 0.9 * one.forecast_bus_bytes_per_s, 1);
    EXPECT_GE(one.share, kLeastShare);
    EXPECT_EQ(one.bytes % (16 * one.ranks), 0);
  }
}

// Eight data groups of two ranks run at once over the NICs of two nodes: what they send together is
// no more than these carry, however few there are.
TEST(Thresholds, GroupsThatRunAtOnceShareTheirLinks) {
  for (const char* cluster : {"gcp-a2-ultra", "aws-p4d"}) {
    const Scenario of = testing::scenario_from(
        R"({"stepcast": 1, "model": "llama-3.1-8b", "cluster": {"base": ")" + std::string(cluster) +
        R"(", "nodes": 2}, "training": {"global_batch": 32, "sequence_length": 4096},
            "layout": {"tp": 8}})");
    const Thresholds all = thresholds_of(of);
    const CollectiveThreshold& dp = threshold_over(all, "dp");
    const ClusterSpec& spec = of.cluster.spec;
    EXPECT_LE(8 * dp.forecast_bus_bytes_per_s,
              spec.nic_bandwidth.value() * static_cast<double>(spec.nics_per_node))
        << cluster;
    EXPECT_GT(dp.forecast_bus_bytes_per_s, 0);
  }
}

// 16 ranks, tp 4 fastest: tensor groups are neighbours in a node, data groups each fourth rank over
// both nodes.
TEST(Thresholds, CommandsMakeTheGroupsOfTheLayout) {
  const Thresholds out = thresholds_of(scenario());
  const CollectiveThreshold& tp = threshold_over(out, "tp");
  EXPECT_EQ(tp.ranks, 4);
  EXPECT_EQ(tp.nodes, 1);
  EXPECT_EQ(tp.command.rfind("NCCL_TESTS_SPLIT=\"DIV 4\" mpirun -np 16 --map-by ppr:8:node ", 0),
            0u)
      << tp.command;
  const CollectiveThreshold& dp = threshold_over(out, "dp");
  EXPECT_EQ(dp.ranks, 4);
  EXPECT_EQ(dp.nodes, 2);
  EXPECT_EQ(dp.command.rfind("NCCL_TESTS_SPLIT=\"MOD 4\" mpirun -np 16 ", 0), 0u) << dp.command;
}

TEST(Thresholds, AGroupOfAllRanksNeedsNoSplit) {
  const Thresholds out = thresholds_of(scenario(R"("tp": 1)"));
  EXPECT_EQ(threshold_over(out, "dp").command.rfind("mpirun -np 16 ", 0), 0u);
}

TEST(Thresholds, RefuseALayoutThatDoesNotFit) {
  const Scenario of = testing::scenario_from(
      R"({"stepcast": 1, "model": "llama-3.1-405b", "cluster": "dgx-h100x1", "training":
          {"global_batch": 8, "sequence_length": 4096}, "layout": {"tp": 8}})");
  const auto out = make_thresholds(of, testing::source_folders());
  ASSERT_FALSE(out.has_value());
  EXPECT_NE(to_string(out.error()).find("does not fit"), std::string::npos);
}

TEST(ThresholdFile, ReadsBackAsWritten) {
  const Thresholds before = thresholds_of(scenario());
  const std::string text = threshold_file(before).text();
  ASSERT_TRUE(is_threshold_file(text));
  const auto after = read_threshold_file(text, "acceptance.json");
  ASSERT_TRUE(after.has_value()) << to_string(after.error());
  EXPECT_EQ(threshold_file(*after).text().size(), text.size());
  EXPECT_EQ(after->most_step_s, before.most_step_s);
  ASSERT_EQ(after->collectives.size(), before.collectives.size());
  EXPECT_EQ(after->collectives.front().command, before.collectives.front().command);
}

TEST(ThresholdFile, NamesTheKeyThatIsWrong) {
  const auto error = [](const std::string& text) {
    const auto read = read_threshold_file(text, "a.json");
    return read ? std::string() : to_string(read.error());
  };
  EXPECT_NE(error("{}").find("stepcast_acceptance"), std::string::npos);
  EXPECT_NE(error(R"({"stepcast_acceptance": 2})").find("format 1"), std::string::npos);
  const std::string bad = R"({"stepcast_acceptance": 1, "gpus": 8, "global_batch": 8,
    "sequence_length": 8, "predicted_step_time_s": 1, "most_step_time_s": -1,
    "least_tokens_per_s": 1, "collectives": [7]})";
  EXPECT_NE(error(bad).find("most_step_time_s"), std::string::npos);
  EXPECT_NE(error(bad).find("collectives[0].bytes"), std::string::npos);
}

Thresholds made() {
  Thresholds out;
  out.gpus = 16;
  out.global_batch = 8;
  out.sequence = 1024;
  out.most_step_s = 2;
  out.least_tokens_per_s = 4096;
  CollectiveThreshold one;
  one.kind = CollectiveKind::kAllGather;
  one.group = "dp";
  one.ranks = 8;
  one.bytes = 8'000'000;
  one.least_bus_bytes_per_s = 70e9;
  out.collectives = {one};
  return out;
}

ImportedCollective measured(std::int64_t ranks, double bytes, double seconds) {
  ImportedCollective out;
  out.kind = CollectiveKind::kAllGather;
  out.ranks = ranks;
  out.samples = {{Bytes(bytes), Seconds(seconds)}};
  return out;
}

// 8 MB in 80 us: 100 GB/s, times 7/8 on the bus.
TEST(JudgeResults, HoldsBusBandwidthAndStepAgainstThresholds) {
  Results results;
  results.step_s = 1;
  results.imported.collectives = {measured(8, 8e6, 80e-6)};
  const auto out = judge_results(made(), results);
  ASSERT_EQ(out.size(), 3u);
  for (const Judged& one : each_of(out)) EXPECT_TRUE(one.kept()) << one.what;
  EXPECT_NEAR(*out[2].measured, 87.5e9, 1);
  results.imported.collectives = {measured(8, 8e6, 200e-6)};
  results.step_s = 3;
  for (const Judged& one : each_of(judge_results(made(), results))) EXPECT_FALSE(one.kept());
}

TEST(JudgeResults, CountsWhatWasNotMeasuredAsBroken) {
  for (const Judged& one : each_of(judge_results(made(), {}))) {
    EXPECT_FALSE(one.measured.has_value());
    EXPECT_FALSE(one.kept());
  }
  Results other;
  other.imported.collectives = {measured(8, 80e6, 80e-6), measured(4, 8e6, 80e-6)};
  EXPECT_FALSE(judge_results(made(), other)[2].measured.has_value());
}

// Groups that ran at once are printed as one of all ranks.
TEST(JudgeResults, TakesSplitGroupsThatArePrintedAsTheWorld) {
  Results results;
  results.imported.collectives = {measured(16, 8e6, 80e-6)};
  EXPECT_NEAR(*judge_results(made(), results)[2].measured, 87.5e9, 1);
}

}  // namespace
}  // namespace stepcast
