// SPDX-License-Identifier: Apache-2.0
#include "plan/space.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/json_tree.h"
#include "core/text/escape.h"
#include "core/work_limits.h"
#include "layout/read_scenario.h"
#include "plan/layout_code.h"
#include "plan/planning.h"
#include "plan/search.h"
#include "plan/search_result.h"

namespace stepcast {
namespace {

constexpr const char* kSmallSpace = R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
    "training":{"global_batch":16,"sequence_length":1024}})";

std::set<std::int64_t> values_of(const std::string& text, const char* path) {
  const auto planner = planner_of(text);
  if (planner == nullptr) return {};
  const Space& space = planner->space();
  std::set<std::int64_t> out;
  for (const LayoutChoice& choice : all_layouts(space)) {
    for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
      if (std::string(space.dimensions()[i]->path) == path) out.insert(choice.values[i]);
    }
  }
  return out;
}

TEST(Space, RanksShareLongSequencesOnly) {
  const auto scenario = [](const char* sequence) {
    return std::string(R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x1",
        "training":{"framework":"megatron","global_batch":8,"sequence_length":)") +
           sequence + R"(},"layout":{"recompute":"none","zero":1}})";
  };
  EXPECT_EQ(values_of(scenario("8192"), "layout.cp"), (std::set<std::int64_t>{1}));
  EXPECT_EQ(values_of(scenario("16384"), "layout.cp"), (std::set<std::int64_t>{1, 2, 4}));
  // Ring, all-gather and all-to-all: inside a node the hierarchical way is the last.
  EXPECT_EQ(values_of(scenario("16384"), "layout.cp_method"), (std::set<std::int64_t>{0, 1, 2}));
}

// FSDP keeps a copy of the states in each node, or one over all nodes.
TEST(Space, StatesAreShardedOverAllRanksOrThoseOfANode) {
  const std::string one_pass = R"("layout":{"recompute":"none","tp":1,"micro_batch":1}})";
  const auto scenario = [&](const char* cluster) {
    return std::string(R"({"stepcast":1,"model":"llama-3.2-1b","cluster":")") + cluster +
           R"(","training":{"framework":"fsdp","global_batch":32,"sequence_length":1024},)" +
           one_pass;
  };
  EXPECT_EQ(values_of(scenario("dgx-h100x2"), "layout.shard_group"),
            (std::set<std::int64_t>{0, 8}));
  EXPECT_EQ(values_of(scenario("dgx-h100x1"), "layout.shard_group"), (std::set<std::int64_t>{0}));
}

// Values that a dimension leaves out as equal to another really give the same forecast.
TEST(Space, ValuesLeftOutChangeNoForecast) {
  const auto forecast = [](const std::string& layout) {
    const auto planner = planner_of(
        R"({"stepcast":1,"model":"gpt2","cluster":"dgx-a100-80gx1","training":
            {"global_batch":8,"sequence_length":512,"framework":"native"},"layout":)" +
        layout + "}");
    const auto layouts = all_layouts(planner->space());
    EXPECT_EQ(layouts.size(), 1u) << layout;
    return planner->predict(layouts.front());
  };
  const std::string rest =
      R"("micro_batch":1,"virtual_stages":1,"recompute":"none","sequence_parallel":true,)";
  const auto layout = [&](const char* degrees, const char* schedule, int zero, const char* order,
                          const char* overlap) {
    return "{" + rest + degrees + R"(,"schedule":")" + schedule + R"(","zero":)" +
           std::to_string(zero) + R"(,"order":")" + order + R"(","overlap":{)" + overlap + "}}";
  };
  const std::string none = R"("grad_reduce":false,"param_gather":false,"tp":false,"pp":false)";
  struct Pair {
    std::string one, other;
  };
  const Pair pairs[] = {
      // ZeRO and overlapped reductions without replicas.
      {layout(R"("tp":4,"pp":2)", "1f1b", 0, "tp-cp-ep-dp-pp", none.c_str()),
       layout(R"("tp":4,"pp":2)", "1f1b", 1, "tp-cp-ep-dp-pp", none.c_str())},
      {layout(R"("tp":4,"pp":2)", "1f1b", 0, "tp-cp-ep-dp-pp", none.c_str()),
       layout(R"("tp":4,"pp":2)", "1f1b", 0, "tp-cp-ep-dp-pp",
              R"("grad_reduce":true,"param_gather":false,"tp":false,"pp":false)")},
      // The place of a dimension of one rank.
      {layout(R"("tp":4,"pp":2)", "1f1b", 0, "tp-cp-ep-dp-pp", none.c_str()),
       layout(R"("tp":4,"pp":2)", "1f1b", 0, "dp-tp-cp-ep-pp", none.c_str())},
      // Overlap of what is not there.
      {layout(R"("tp":1,"pp":1)", "1f1b", 0, "tp-cp-ep-dp-pp", none.c_str()),
       layout(R"("tp":1,"pp":1)", "1f1b", 0, "tp-cp-ep-dp-pp",
              R"("grad_reduce":false,"param_gather":false,"tp":true,"pp":true)")},
      // One micro-batch leaves a schedule nothing to arrange.
      {layout(R"("tp":1,"pp":1)", "1f1b", 0, "tp-cp-ep-dp-pp", none.c_str()),
       layout(R"("tp":1,"pp":1)", "gpipe", 0, "tp-cp-ep-dp-pp", none.c_str())},
  };
  for (const Pair& pair : pairs) {
    const auto one = forecast(pair.one), other = forecast(pair.other);
    ASSERT_TRUE(one && other);
    EXPECT_NEAR(one->step_time / other->step_time, 1, 1e-9) << pair.one << "\n" << pair.other;
    EXPECT_EQ(one->peak_device, other->peak_device) << pair.one << "\n" << pair.other;
  }
}

// On one GPU FSDP wraps nothing, and no launch file would say that it does.
TEST(Space, OneGpuShardsNothingInPyTorch) {
  const auto zeros = [](const char* training) {
    const auto planner = planner_of(
        std::string(R"({"stepcast":1,"model":"gpt2","cluster":{"base":"dgx-a100-80g","gpus":1},
            "training":{"global_batch":8,"sequence_length":512)") +
        training + R"(},"layout":{"recompute":"none"}})");
    std::set<int> out;
    if (planner == nullptr) return out;
    Scenario scenario = planner->space().base();
    for (const LayoutChoice& choice : all_layouts(planner->space())) {
      planner->space().put(choice, scenario);
      out.insert(scenario.layout.zero);
    }
    return out;
  };
  EXPECT_EQ(zeros(R"(,"framework":"fsdp")"), std::set<int>{0});
  EXPECT_EQ(zeros(R"(,"framework":"deepspeed")"), (std::set<int>{0, 1, 2, 3}));
}

TEST(Space, WhatTheScenarioStatesIsFixed) {
  const auto planner = planner_of(R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
      "training":{"global_batch":16,"sequence_length":1024},
      "layout":{"tp":2,"recompute":"full","overlap":{"tp":true}}})");
  ASSERT_NE(planner, nullptr);
  const Space& space = planner->space();
  Scenario scenario = space.base();
  const auto layouts = all_layouts(space);
  ASSERT_FALSE(layouts.empty());
  for (const LayoutChoice& choice : layouts) {
    space.put(choice, scenario);
    EXPECT_EQ(scenario.layout.tp, 2);
    EXPECT_EQ(scenario.layout.recompute.mode, RecomputeMode::kFull);
    EXPECT_EQ(scenario.layout.recompute.layers, 0);
    EXPECT_TRUE(scenario.layout.overlap.tp);
  }
}

// Counts tp 1 or 2; pp 1 or 2 of what is left; with 2 micro-batches' worth of batch on each.
TEST(Space, CountsCombinationsAsTheProductOfTheirValues) {
  const auto planner = planner_of(R"({"stepcast":1,"model":"gpt3-1.3b",
      "cluster":{"base":"dgx-a100-80g","gpus":2},
      "training":{"global_batch":4,"sequence_length":1024},
      "layout":{"recompute":"none","order":"tp-cp-ep-dp-pp","schedule":"1f1b","zero":0,
                "virtual_stages":1,
                "overlap":{"grad_reduce":false,"param_gather":false,"pp":false}}})");
  ASSERT_NE(planner, nullptr);
  // (tp, pp): (1,1) has dp 2 and micro-batches of 1 or 2; (1,2) and (2,1) have 1, 2 or 4; each with
  // both settings of sequence parallelism and of tp overlap.
  EXPECT_EQ(planner->space().combinations(), (2 + 3 + 3) * 2 * 2);
}

// It takes longer than a search may where layers and GPUs go into thousands.
TEST(Space, CountingEndsWhereItsTimeIsOver) {
  const std::function<bool()> over = [] { return true; };
  const StopScope scope(over);
  EXPECT_THROW(planner_of(kSmallSpace), Stopped);
}

TEST(Space, ARuleThatCutsIsCountedByItsKey) {
  const auto planner = planner_of(R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
      "training":{"framework":"megatron","global_batch":16,"sequence_length":1024}})");
  ASSERT_NE(planner, nullptr);
  const auto result = planner->search({});
  ASSERT_TRUE(result);
  const auto zero = result->space.rules.find("layout.zero");
  ASSERT_NE(zero, result->space.rules.end());
  EXPECT_NE(zero->second.example.message.find("zero 2 with framework megatron"), std::string::npos);
}

// Ranges cut the tree, not the list of its leaves.
TEST(Space, ARangeKeepsThePartOfTheSpaceThatLiesInIt) {
  const auto whole = planner_of(kSmallSpace);
  auto document = JsonDocument::parse(kSmallSpace, "test");
  const auto part =
      Planner::make(**document, source_folders(), {{"layout.tp", 2, 4}, {"layout.zero", 1, 1}});
  ASSERT_TRUE(whole && part);
  Scenario scenario = whole->space().base();
  std::vector<LayoutChoice> expected;
  for (const LayoutChoice& choice : all_layouts(whole->space())) {
    whole->space().put(choice, scenario);
    const Layout& layout = scenario.layout;
    if (layout.tp >= 2 && layout.tp <= 4 && layout.zero == 1) expected.push_back(choice);
  }
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(all_layouts((*part)->space()), expected);
  EXPECT_LT((*part)->space().combinations(), whole->space().combinations());
}

TEST(Space, AStatedKeyOutsideItsRangeLeavesNothingAndIsNamed) {
  const std::string text = R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
      "training":{"global_batch":16,"sequence_length":1024},"layout":{"tp":2,"recompute":"full"}})";
  const auto planner = [&](std::vector<ValueRange> ranges) {
    auto document = JsonDocument::parse(text, "test");
    return std::move(*Planner::make(**document, source_folders(), ranges));
  };
  SpaceCount count;
  const auto outside = planner({{"layout.tp", 1, 1}});
  EXPECT_TRUE(outside->space().branches(count).empty());
  EXPECT_EQ(outside->space().combinations(), 0);
  ASSERT_EQ(count.rules.size(), 1u);
  EXPECT_NE(count.rules["layout.tp"].example.message.find("stated as 2"), std::string::npos);
  EXPECT_FALSE(
      all_layouts(planner({{"layout.tp", 2, 8}, {"layout.recompute", 1, 99}})->space()).empty());
}

}  // namespace
}  // namespace stepcast
