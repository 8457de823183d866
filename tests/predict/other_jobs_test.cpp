// SPDX-License-Identifier: Apache-2.0
// Jobs that share a fabric are replayed together.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/each.h"
#include "core/json_tree.h"
#include "core/text/escape.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;
using testing::source_folders;

// Nodes 0 and 1 under one leaf, 2 and 3 under another, on a spine that carries little.
std::string on_leaves(const std::string& more, int oversubscription = 16) {
  return R"({"stepcast": 1, "model": "gpt3-350m", "cluster": {"base": "dgx-h100", "nodes": 4,
      "nodes_per_leaf_group": 2, "rail_optimised": false, "oversubscription": )" +
         std::to_string(oversubscription) + R"(}, "training": {"global_batch": 64})" + more + "}";
}

std::string job_beside(const std::string& nodes, int batch = 64, const std::string& more = "") {
  return R"(, "other_jobs": [{"nodes": ")" + nodes +
         R"(", "scenario": {"stepcast": 1, "model": "gpt3-350m", "training": {"global_batch": )" +
         std::to_string(batch) + "}" + more + "}}]";
}

Prediction joint_forecast(const Scenario& scenario, const PredictOptions& options = {}) {
  auto out = predict(scenario, source_folders(), options);
  EXPECT_TRUE(out.has_value()) << (out ? std::string() : to_string(out.error()));
  return out ? *out : Prediction{};
}

void expect_alike(Seconds one, Seconds other, double relative) {
  EXPECT_NEAR(one.value(), other.value(), relative * other.value());
}

// Under two leaves, each job stays below its own.
TEST(OtherJobs, ThatShareNoLinkHaveTheirOwnSteps) {
  const Prediction both = joint_forecast(scenario_from(on_leaves(job_beside("2-3", 128))));
  expect_alike(both.step_time, both.beside.alone, 1e-9);
  expect_alike(both.beside.steps.front(), both.beside.steps_alone.front(), 1e-9);
  EXPECT_TRUE(both.beside.links.empty());
}

// Two equal jobs, each with a node under either leaf, begin at once and stay in step: their
// all-reduces meet on the trunks, which each alone fills, and every byte takes twice as long. What
// a step then takes longer is the time for which the trunk is full in a step of one.
TEST(OtherJobs, OfEqualStepsHalveATrunkThatEachFills) {
  // Long kernels, so that no host is late, which longer messages would hide.
  const std::string layout = R"(, "layout": {"micro_batch": 4})";
  const std::string all = on_leaves(layout + job_beside("1,3", 64, layout), 64);
  PredictOptions traced;
  traced.trace = true;
  traced.kernels = traced.other_jobs = false;
  const Scenario scenario = scenario_from(all);
  const Prediction one = joint_forecast(scenario, traced);
  Seconds full;
  for (std::size_t l = 0; l < one.link_use.size(); ++l) {
    if (scenario.cluster.topology.links()[l].kind != LinkKind::kFabric) continue;
    full = std::max(full, one.link_use[l].all());
  }
  ASSERT_GT(full / one.step_time, 0.1);
  const Prediction both = joint_forecast(scenario);
  expect_alike(both.beside.alone, one.step_time, 1e-12);
  EXPECT_NEAR((both.step_time - one.step_time).value(), full.value(), 0.01 * full.value());
  expect_alike(both.beside.steps.front(), both.step_time, 1e-9);
  ASSERT_FALSE(both.beside.links.empty());
  for (const SharedLink& link : each_of(both.beside.links)) {
    EXPECT_NEAR(link.own, link.others, 1e-9) << link.name;
    EXPECT_NE(link.name.find("leaf"), std::string::npos);
  }
  EXPECT_NEAR(both.time.total().value(), both.step_time.value(), 1e-9);
}

// Jobs that send on one trunk lose something, never more than all that the other sends meanwhile.
TEST(OtherJobs, OfOtherStepsLoseAtMostWhatTheOthersSend) {
  const Prediction both = joint_forecast(scenario_from(on_leaves(job_beside("1,3", 256), 64)));
  EXPECT_GT(both.step_time.value(), both.beside.alone.value() * 1.001);
  const SharedLink& busiest = both.beside.links.front();
  EXPECT_LE((both.step_time - both.beside.alone).value(),
            busiest.others * both.step_time.value() * 1.1);
}

// Folded by classes on which all jobs agree, and rank by rank.
TEST(OtherJobs, FoldedIsUnfolded) {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<int> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  int folds = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string nodes = round % 3 == 0 ? "1,3" : round % 3 == 1 ? "2-3" : "3";
    const std::string layout = round % 3 == 2
                                   ? ""
                                   : R"(, "layout": {"tp": )" + std::to_string(pick({1, 2, 8})) +
                                         R"(, "pp": )" + std::to_string(pick({1, 2})) + "}";
    const std::string all = on_leaves(R"(, "layout": {"tp": )" + std::to_string(pick({1, 2, 4})) +
                                          R"(, "zero": )" + std::to_string(pick({0, 1})) + "}" +
                                          job_beside(nodes, pick({64, 96, 192}), layout),
                                      pick({1, 4, 32}));
    std::string text = all;
    if (round % 3 == 2) {  // three nodes are left, and 96 sequences divide by what they have
      text.replace(text.find(R"("global_batch": 64)"), 18, R"("global_batch": 96)");
    }
    const Scenario scenario = scenario_from(text);
    PredictOptions each;
    each.fold = false;
    const Prediction folded = joint_forecast(scenario), unfolded = joint_forecast(scenario, each);
    expect_alike(folded.step_time, unfolded.step_time, 1e-9);
    expect_alike(folded.beside.steps.front(), unfolded.beside.steps.front(), 1e-9);
    EXPECT_LE(folded.simulated_tasks, unfolded.simulated_tasks) << text;
    folds += folded.simulated_tasks < unfolded.simulated_tasks ? 1 : 0;
  }
  EXPECT_GT(folds, 0);
}

// A step of the one is as long as twelve of the other. Whichever is first, both are found to lose
// about the same.
TEST(OtherJobs, LoseTheSameWhoeverIsFirst) {
  const auto beside = [](int own, int other) {
    std::string text = on_leaves(job_beside("1,3", other), 64);
    text.replace(text.find(R"("global_batch": 64)"), 18,
                 R"("global_batch": )" + std::to_string(own));
    return joint_forecast(scenario_from(text));
  };
  const Prediction brief = beside(64, 768), lengthy = beside(768, 64);
  const double loss = brief.step_time / brief.beside.alone;
  EXPECT_GT(loss, 1.001);
  EXPECT_NEAR(loss, lengthy.beside.steps.front() / lengthy.beside.steps_alone.front(), 0.1 * loss);
  const double other = brief.beside.steps.front() / brief.beside.steps_alone.front();
  EXPECT_GT(other, 1.0001);
  EXPECT_NEAR(other, lengthy.step_time / lengthy.beside.alone, 0.1 * other);
}

TEST(OtherJobs, AreWrittenAndReadBack) {
  const Scenario once = scenario_from(on_leaves(job_beside("1,3", 128)));
  EXPECT_EQ(once.cluster.gpus(), 16);
  const Scenario again = scenario_from(json_text(to_json(once)));
  ASSERT_EQ(again.other_jobs.size(), 1u);
  EXPECT_EQ(again.other_jobs.front().nodes, "1,3");
  EXPECT_EQ(joint_forecast(again).step_time, joint_forecast(once).step_time);
}

}  // namespace
}  // namespace stepcast
