// SPDX-License-Identifier: Apache-2.0
#include "plan/launchable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/planning.h"

namespace stepcast {
namespace {

// Everything that the layouts of a space show of a key.
template <class Of>
auto all_of(const std::string& text, Of of) {
  const auto planner = planner_of(text);
  EXPECT_NE(planner, nullptr);
  std::set<decltype(of(Layout{}))> out;
  Scenario scenario = planner->space().base();
  for (const LayoutChoice& choice : all_layouts(planner->space())) {
    planner->space().put(choice, scenario);
    out.insert(of(scenario.layout));
  }
  return out;
}

std::string on(const std::string& cluster, const std::string& training,
               const std::string& layout = "{}") {
  return R"({"stepcast":1,"model":"gpt2","cluster":)" + cluster +
         R"(,"training":{"global_batch":16,"sequence_length":512,"framework":"megatron")" +
         training + R"(},"layout":)" + layout + "}";
}

constexpr const char* kTwoPairs =
    R"({"base":"dgx-a100-80g","nodes":2,"gpus_per_node":2,"nics_per_node":2})";

TEST(Launchable, TensorParallelismLeavesTheNvlinkDomainOnlyWhenAsked) {
  const auto degrees = [](const Layout& layout) { return layout.tp; };
  EXPECT_EQ(all_of(on(kTwoPairs, ""), degrees), (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(all_of(on(kTwoPairs, "", R"({"tp":4})"), degrees), (std::set<std::int64_t>{4}));
}

TEST(Launchable, NoOrderOfRanksTakesTensorParallelismAcrossTheNetwork) {
  const auto orders = [](const Layout& layout) { return layout.order; };
  for (const std::string& order : all_of(on(kTwoPairs, "", R"({"tp":2})"), orders)) {
    EXPECT_TRUE(order.starts_with("tp")) << order;
  }
  // Within one node every order is as good.
  const char* one = R"({"base":"dgx-a100-80g","gpus":4})";
  EXPECT_TRUE(all_of(on(one, "", R"({"tp":2})"), orders).contains("dp-tp-cp-ep-pp"));
}

TEST(Launchable, OverlappedTensorParallelismStaysInTheDomainToo) {
  const auto overlaps = [](const Layout& layout) { return layout.overlap.tp; };
  EXPECT_EQ(all_of(on(kTwoPairs, "", R"({"tp":4})"), overlaps), std::set<bool>{false});
  EXPECT_TRUE(all_of(on(kTwoPairs, "", R"({"tp":2})"), overlaps).contains(true));
}

// Trainers on DeepSpeed and FSDP recompute all layers or none, and no recipe of theirs says more.
TEST(Launchable, OnlyMegatronRecomputesSomeOfTheLayers) {
  const auto layers = [](const Layout& layout) { return layout.recompute.layers; };
  const auto proposed = [&](const std::string& framework) {
    std::string text = on(kTwoPairs, "");
    text.replace(text.find("megatron"), 8, framework);
    return all_of(text, layers);
  };
  EXPECT_EQ(proposed("deepspeed"), std::set<std::int64_t>{0});
  EXPECT_EQ(proposed("fsdp"), std::set<std::int64_t>{0});
  EXPECT_GT(proposed("megatron").size(), 1U);
}

// DeepSpeed's autotp takes zero 0 to 2 and overlaps nothing.
TEST(Launchable, DeepSpeedShardsParametersOrTensors) {
  const std::string text =
      R"({"stepcast":1,"model":"gpt2","cluster":{"base":"dgx-a100-80g","gpus":4},)"
      R"("training":{"global_batch":16,"sequence_length":512,"framework":"deepspeed"},"layout":)";
  const auto zero_with_tensor = [](const Layout& layout) {
    return layout.tp > 1 ? layout.zero : 0;
  };
  const auto overlaps = [](const Layout& layout) { return layout.overlap.tp; };
  EXPECT_FALSE(all_of(text + "{}}", zero_with_tensor).contains(3));
  EXPECT_EQ(all_of(text + R"({"tp":2}})", overlaps), std::set<bool>{false});
  EXPECT_EQ(all_of(text + R"({"tp":2,"zero":3}})", zero_with_tensor), std::set<int>{3});
  const auto tensor = [](const Layout& layout) { return layout.tp; };
  EXPECT_EQ(all_of(text + R"({"zero":3}})", tensor), std::set<std::int64_t>{1});
}

TEST(Launchable, AReleaseOffersWhatItHad) {
  const char* node = R"({"base":"dgx-a100-80g","gpus":4})";
  const auto release = [&](const char* month, const std::string& layout = "{}") {
    return on(node, std::string(R"(,"release":")") + month + R"(")", layout);
  };
  const auto zero = [](const Layout& layout) { return layout.zero; };
  EXPECT_EQ(all_of(release("2021-04"), zero), std::set<int>{0});
  EXPECT_EQ(all_of(release("2021-04", R"({"zero":1})"), zero), std::set<int>{1});  // asked for
  EXPECT_EQ(all_of(release("2024-07"), zero), (std::set<int>{0, 1}));

  const auto mode = [](const Layout& layout) { return layout.recompute.mode; };
  EXPECT_FALSE(all_of(release("2021-04"), mode).contains(RecomputeMode::kSelective));
  EXPECT_TRUE(all_of(release("2022-05"), mode).contains(RecomputeMode::kSelective));

  const auto stages = [](const Layout& layout) { return layout.pp; };
  EXPECT_EQ(all_of(release("2020-06"), stages), std::set<std::int64_t>{1});
  const auto chunks = [](const Layout& layout) { return layout.virtual_stages; };
  EXPECT_EQ(all_of(release("2020-12"), chunks), std::set<std::int64_t>{1});
  EXPECT_GT(all_of(release("2021-04"), chunks).size(), 1u);

  const auto overlaps = [](const Layout& layout) {
    return layout.overlap.tp || layout.overlap.grad_reduce;
  };
  EXPECT_EQ(all_of(release("2022-05"), overlaps), std::set<bool>{false});
  EXPECT_TRUE(all_of(release("2024-07"), overlaps).contains(true));
}

// Trainers of FSDP keep parameters gathered on a pipeline and give a rank two stages at most.
TEST(Launchable, ShardedPipelinesAreThoseThatTrainersHave) {
  const auto sharded = [](const std::string& training, const std::string& layout) {
    return R"({"stepcast":1,"model":"gpt2","cluster":{"base":"dgx-a100-80g","gpus":4},)"
           R"("training":{"global_batch":16,"sequence_length":512,"framework":"fsdp")" +
           training + R"(},"layout":)" + layout + "}";
  };
  const auto zero = [](const Layout& layout) { return layout.zero; };
  EXPECT_EQ(all_of(sharded("", R"({"pp":2,"dp":2})"), zero), std::set<int>{2});
  EXPECT_EQ(all_of(sharded("", R"({"pp":1,"dp":4})"), zero), (std::set<int>{2, 3}));
  EXPECT_EQ(all_of(sharded("", R"({"pp":4})"), zero), std::set<int>{0});  // one data rank
  EXPECT_EQ(all_of(sharded("", R"({"pp":2,"zero":3})"), zero), std::set<int>{3});
  const auto chunks = [](const Layout& layout) { return layout.virtual_stages; };
  EXPECT_EQ(all_of(sharded("", R"({"pp":2})"), chunks), (std::set<std::int64_t>{1, 2}));
  const auto stages = [](const Layout& layout) { return layout.pp; };
  EXPECT_EQ(all_of(sharded(R"(,"mode":"lora")", "{}"), stages), std::set<std::int64_t>{1});
  EXPECT_EQ(all_of(sharded(R"(,"mode":"lora")", R"({"pp":2})"), stages), std::set<std::int64_t>{2});
}

// PEFT and torchtune shard over data parallel ranks alone. Who names another framework, or states
// the ranks, has a program for it.
TEST(Launchable, AdaptersSpreadOverDataParallelRanksUnlessAskedOtherwise) {
  const auto lora = [](const std::string& training, const std::string& layout) {
    return R"({"stepcast":1,"model":"gpt2","cluster":{"base":"dgx-a100-80g","gpus":4},)"
           R"("training":{"global_batch":16,"sequence_length":512,"mode":"lora")" +
           training + R"(},"layout":)" + layout + "}";
  };
  const auto ranks = [](const Layout& l) { return std::max({l.tp, l.pp, l.cp}); };
  EXPECT_EQ(all_of(lora("", "{}"), ranks), std::set<std::int64_t>{1});
  EXPECT_TRUE(all_of(lora(R"(,"framework":"megatron")", "{}"), ranks).contains(4));
  EXPECT_EQ(all_of(lora("", R"({"tp":2})"), [](const Layout& l) { return l.tp; }),
            std::set<std::int64_t>{2});
  const auto modes = [](const Layout& l) { return l.recompute.mode; };
  EXPECT_EQ(all_of(lora("", "{}"), modes),
            (std::set<RecomputeMode>{RecomputeMode::kNone, RecomputeMode::kFull}));
}

TEST(Launchable, ARefusalSaysSinceWhenAndWhatToDo) {
  const auto planner =
      planner_of(on(R"({"base":"dgx-a100-80g","gpus":2})", R"(,"release":"2021-04")"));
  ASSERT_NE(planner, nullptr);
  Scenario scenario = planner->space().base();
  scenario.layout.recompute = {.mode = RecomputeMode::kSelective,
                               .modules = {{RecomputedModule::kCoreAttention}}};
  const Errors errors = not_proposed(scenario);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(errors.front().path, "layout.recompute");
  EXPECT_NE(errors.front().message.find("since 2022-03"), std::string::npos);
}

}  // namespace
}  // namespace stepcast
