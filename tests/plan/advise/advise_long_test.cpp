// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/advise.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "plan/advise/advising.h"

namespace stepcast {
namespace {

std::string scenario(const std::string& model, const std::string& cluster,
                     const std::string& training, const std::string& more = "") {
  return R"({"stepcast":1,"model":")" + model + R"(","cluster":)" + cluster +
         R"(,"training":{"sequence_length":2048,)" + training + "}" + more + "}";
}

constexpr const char* kH100 = R"({"base":"dgx-h100","gpus":1})";
constexpr const char* kNode = R"({"base":"dgx-h100","nodes":1})";

// 1.3 B parameters of 18 bytes and their activations fit on each GPU.
std::string small_model(const std::string& more = "") {
  return scenario("gpt3-1.3b", kNode, R"("global_batch":64)", more);
}

TEST(Advice, OneGpuOfManyIsNoAnswerToSomebodyWhoAsksForNoSpeed) {
  const Advice advice = expect_advice(small_model());
  EXPECT_EQ(advised(advice), "ddp");
  EXPECT_EQ(rung_of(advice, "one-gpu").verdict, RungVerdict::kSpare);
  EXPECT_EQ(rung_of(advice, "one-gpu").gpus, 1);
  EXPECT_EQ(rung_of(advice, "zero-1").verdict, RungVerdict::kAbove);
}

TEST(Advice, OneGpuIsEnoughWhereItReachesTheDemandedThroughput) {
  const Advice advice = expect_advice(small_model(), 20'000);
  EXPECT_EQ(advised(advice), "one-gpu");
  EXPECT_GT(speed_against(rung_of(advice, "ddp"), rung_of(advice, "one-gpu")), 4);
}

// All experts on every GPU are simpler than experts that are spread, where they fit.
TEST(Advice, AMixtureOfExpertsHasARungOfItsOwn) {
  const std::string experts = R"({"layers":8,"hidden":1024,"heads":16,"ffn":4096,"vocab":32000,)"
                              R"("mlp":"swiglu","moe":{"experts":8,"top_k":2,"ffn":2048}})";
  const std::string text = R"({"stepcast":1,"model":)" + experts + R"(,"cluster":)" + kNode +
                           R"(,"training":{"sequence_length":2048,"global_batch":64}})";
  const Advice advice = expect_advice(text);
  const RungResult& spread = rung_of(advice, "ep");
  ASSERT_TRUE(spread.layout.has_value());
  EXPECT_GE(spread.scenario().layout.ep, 2);
  EXPECT_EQ(rung_of(advice, "zero-1").scenario().layout.ep, 1);
  const Advice dense = expect_advice(small_model());
  EXPECT_TRUE(std::ranges::none_of(
      dense.rungs, [](const RungResult& result) { return result.rung->id == std::string("ep"); }));
}

// Pipelines of whole layers hold GPT-3 175B, and wait: four of them have 32 micro-batches each for
// 64 stages, where eight GPUs to a layer leave 16 stages.
TEST(Advice, ASimpleRungThatIsFarBehindIsPassedBy) {
  const std::string text =
      scenario("gpt3-175b", R"({"base":"dgx-h100","nodes":32})",
               R"("global_batch":128,"framework":"megatron")",
               R"(,"layout":{"micro_batch":1,"recompute":"full","schedule":"1f1b","zero":1,)"
               R"("sequence_parallel":false,"overlap":{"tp":false,"pp":false,"grad_reduce":false,)"
               R"("param_gather":false}})");
  const Advice advice = expect_advice(text, {}, 0.05);
  ASSERT_EQ(advised(advice), "3d");
  const RungResult& pipeline = rung_of(advice, "pp");
  ASSERT_TRUE(pipeline.meets());
  EXPECT_EQ(pipeline.verdict, RungVerdict::kBehind);
  EXPECT_GT(speed_against(rung_of(advice, "3d"), pipeline), kWorthItsComplexity);
  // A user who says what is fast enough gets the simplest that is.
  const double slow = pipeline.layout->prediction.tokens_per_s;
  EXPECT_EQ(advised(expect_advice(text, 0.9 * slow, 0.05)), "pp");
}

// A demand between the speeds of two rungs: the lower fails by its own figure.
TEST(Advice, StopsAtTheFirstRungThatIsFastEnough) {
  const Advice first = expect_advice(small_model());
  const double ddp = rung_of(first, "ddp").layout->prediction.tokens_per_s;
  const double zero = rung_of(first, "zero-1").layout->prediction.tokens_per_s;
  ASSERT_GT(zero, ddp);  // a smaller update on each GPU
  const Advice advice = expect_advice(small_model(), (ddp + zero) / 2);
  EXPECT_EQ(advised(advice), "zero-1");
  const RungResult& below = rung_of(advice, "ddp");
  EXPECT_EQ(below.verdict, RungVerdict::kFails);
  ASSERT_EQ(below.shortfalls.size(), 1u);
  EXPECT_EQ(below.shortfalls[0].constraint, Constraint::kThroughput);
  EXPECT_EQ(below.shortfalls[0].value, ddp);
  EXPECT_EQ(below.shortfalls[0].limit, (ddp + zero) / 2);
}

TEST(Advice, DeadlineAndBudgetAreHeldAgainstTheWholeRun) {
  const auto of = [](const std::string& run) {
    return expect_advice(small_model(R"(,"run":{"tokens":2.6e10)" + run + "}"));
  };
  const Advice free = of("");
  const RunLength ddp = *rung_of(free, "ddp").run->forecast.length;
  const Advice late = of(R"(,"deadline":")" + std::to_string(ddp.wall_s.value * 0.4) + R"( s")");
  EXPECT_EQ(advised(late), "none");
  for (const RungResult& result : late.rungs) {
    ASSERT_FALSE(result.shortfalls.empty()) << result.rung->id;
    EXPECT_EQ(result.shortfalls[0].constraint, Constraint::kDeadline);
    EXPECT_GT(result.shortfalls[0].value, result.shortfalls[0].limit);
  }
  // More GPUs are a way out of a deadline.
  ASSERT_EQ(late.ways_out.size(), 1u);
  EXPECT_GE(late.ways_out[0].gpus, 16);
  EXPECT_TRUE(late.ways_out[0].meets());

  const Advice dear = of(R"(,"budget":)" + std::to_string(ddp.dollars->value * 0.5));
  EXPECT_EQ(advised(dear), "none");
  EXPECT_EQ(rung_of(dear, "ddp").shortfalls[0].constraint, Constraint::kBudget);
  EXPECT_TRUE(dear.ways_out.empty());  // and none of a budget
}

// The rungs cover the space: the best of them is what a search of the whole space finds.
TEST(Advice, TheBestRungIsTheOptimumOfPlan) {
  for (const std::string& text :
       {small_model(), scenario("llama-2-7b", kNode, R"("global_batch":64)")}) {
    SearchOptions one;
    one.top = 1;
    one.prove = true;
    one.threads = 2;
    const auto plan = planner_of(text)->search(one);
    ASSERT_TRUE(plan && plan->proven);
    double best = 1e99;
    for (const RungResult& result : expect_advice(text).rungs) {
      // ZeRO-2 takes another framework than `plan` does.
      if (!result.fits || result.rung->framework) continue;
      best = std::min(best, result.layout->prediction.step_time.value());
    }
    EXPECT_EQ(best, plan->found.front().prediction.step_time.value()) << text;
  }
}

// Mixed precision with Adam takes 16 to 18 bytes a parameter, activations and the allocator come on
// top.
TEST(Advice, FullTrainingOf13BOnOneGpuMissesByItsStates) {
  const Advice advice =
      expect_advice(scenario("llama-2-13b", kH100, R"("global_batch":64)"), {}, 0.05);
  EXPECT_EQ(advised(advice), "none");
  ASSERT_EQ(advice.rungs.size(), 2u);  // nothing to shard over one GPU
  const double states = 16 * 13.0e9;
  for (const RungResult& result : advice.rungs) {
    ASSERT_EQ(result.shortfalls.size(), 1u);
    EXPECT_EQ(result.shortfalls[0].constraint, Constraint::kMemory);
    EXPECT_GT(result.shortfalls[0].value, states);
    EXPECT_LT(result.shortfalls[0].value, 1.4 * states);
    EXPECT_NEAR(result.shortfalls[0].limit, 0.95 * 79.1 * 1073741824, 1e9);
  }
  // Less is kept with recomputation.
  EXPECT_LT(advice.rungs[1].shortfalls[0].value, advice.rungs[0].shortfalls[0].value);

  ASSERT_EQ(advice.ways_out.size(), 3u);
  EXPECT_EQ(std::string(advice.ways_out[0].rung->id), "lora");
  EXPECT_EQ(std::string(advice.ways_out[1].rung->id), "qlora");
  for (const RungResult& way : advice.ways_out) EXPECT_TRUE(way.meets()) << way.rung->id;
  const RungResult& more = advice.ways_out[2];
  EXPECT_GE(static_cast<double>(more.gpus) * advice.rungs[0].shortfalls[0].limit, states);
}

TEST(Advice, LoraThatDoesNotFitGoesOnToQlora) {
  const std::string text = scenario("llama-2-13b", R"({"base":"pcie-4090-8","gpus":1})",
                                    R"("global_batch":16,"mode":"lora")");
  const Advice advice = expect_advice(text);
  EXPECT_EQ(advised(advice), "qlora");
  // 2 bytes of each frozen parameter are more than the 24 GiB.
  EXPECT_GT(rung_of(advice, "lora").shortfalls[0].value, 2 * 13.0e9);
  EXPECT_EQ(rung_of(advice, "qlora").scenario().training.mode, TrainingMode::kQlora);
}

// 70 B parameters at 16 bytes each exceed eight GPUs, at 2 bytes each they exceed one GPU, and at
// 1/2 byte each they fit on one.
TEST(Advice, AdaptersThatAreTooLargeForOneGpuAreSpread) {
  const Advice advice = expect_advice(scenario("llama-2-70b", kNode, R"("global_batch":16)"));
  EXPECT_EQ(advised(advice), "none");
  ASSERT_GE(advice.ways_out.size(), 2u);
  EXPECT_EQ(advice.ways_out[0].mode, TrainingMode::kLora);
  EXPECT_EQ(advice.ways_out[0].gpus, 8);
  EXPECT_TRUE(advice.ways_out[0].meets());
  EXPECT_EQ(advice.ways_out[1].mode, TrainingMode::kQlora);
  EXPECT_EQ(advice.ways_out[1].gpus, 1);
  EXPECT_TRUE(advice.ways_out[1].meets());
}

// A batch that all GPUs cannot share leaves them no rung.
TEST(Advice, OneGpuIsTheAnswerWhereNoRungUsesAll) {
  const Advice advice = expect_advice(
      scenario("gpt3-1.3b", kNode, R"("global_batch":3)", R"(,"layout":{"tp":1,"pp":1})"));
  EXPECT_EQ(advised(advice), "one-gpu");
  EXPECT_EQ(rung_of(advice, "one-gpu-recompute").verdict, RungVerdict::kSpare);
  EXPECT_EQ(rung_of(advice, "ddp").verdict, RungVerdict::kRefused);
}

TEST(Advice, AStatedKeyRefusesTheRungsThatContradictIt) {
  const Advice advice = expect_advice(small_model(R"(,"layout":{"tp":2,"pp":1})"));
  EXPECT_EQ(advised(advice), "tp");
  for (const char* id : {"ddp", "zero-1", "zero-2", "fsdp"}) {
    const RungResult& refused = rung_of(advice, id);
    EXPECT_EQ(refused.verdict, RungVerdict::kRefused) << id;
    ASSERT_FALSE(refused.objections.empty()) << id;
    EXPECT_EQ(refused.objections.front().path, "layout.tp") << id;
  }
}

TEST(Advice, WhatNoRungAllowsIsAnError) {
  const auto advice = advice_for(small_model(R"(,"layout":{"pp":5})"));
  ASSERT_FALSE(advice);
  EXPECT_NE(to_string(advice.error()).find("layout.pp"), std::string::npos);
  std::set<std::string> texts;  // many rungs have the same objection
  for (const Error& error : advice.error()) EXPECT_TRUE(texts.insert(to_string(error)).second);
}

// Among rungs that are as good as the fastest, the lowest is named.
TEST(Advice, ThoseAboveAreSpokenForByTheSimplestOfTheBest) {
  Advice advice = expect_advice(small_model());
  const RungResult* best = best_above(advice);
  ASSERT_NE(best, nullptr);
  for (const RungResult& result : advice.rungs) {
    if (!result.meets() || result.gpus == 1) continue;
    EXPECT_LE(speed_against(result, *best), kNoticeableSpeed) << result.rung->id;
    const bool between = &result > &advice.rungs[*advice.advised] && &result < best;
    if (between) {
      EXPECT_GT(speed_against(*best, result), 1) << result.rung->id;
    }
  }
  advice.rungs.resize(*advice.advised + 1);
  EXPECT_EQ(best_above(advice), nullptr);
}

// A rung that is 1 % slower than the fastest is named before it, and one that is 50 % slower not.
TEST(Advice, ARungThatIsNoticeablySlowerDoesNotSpeakForTheOthers) {
  Advice advice = expect_advice(small_model());
  std::vector<RungResult*> above;
  for (std::size_t i = *advice.advised + 1; i < advice.rungs.size(); ++i) {
    if (advice.rungs[i].meets()) above.push_back(&advice.rungs[i]);
  }
  ASSERT_GE(above.size(), 3u);
  for (RungResult* one : above) one->layout->prediction.step_time = Seconds(2);
  above[0]->layout->prediction.step_time = Seconds(1.5);
  above[1]->layout->prediction.step_time = Seconds(1.01);
  above[2]->layout->prediction.step_time = Seconds(1);
  EXPECT_EQ(best_above(advice), above[1]);
}

void expect_same(const std::vector<RungResult>& some, const std::vector<RungResult>& others) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    const RungResult &one = some[i], &other = others[i];
    EXPECT_EQ(one.rung, other.rung);
    EXPECT_EQ(one.verdict, other.verdict) << one.rung->id;
    ASSERT_EQ(one.layout.has_value(), other.layout.has_value()) << one.rung->id;
    if (!one.layout) continue;
    EXPECT_EQ(one.layout->choice, other.layout->choice) << one.rung->id;
    EXPECT_EQ(one.layout->prediction.step_time, other.layout->prediction.step_time);
    EXPECT_EQ(one.layout->prediction.peak_device, other.layout->prediction.peak_device);
  }
}

TEST(Advice, IsTheSameForAnyNumberOfThreads) {
  for (const std::string& text :
       {small_model(), scenario("llama-2-13b", kH100, R"("global_batch":64)")}) {
    const Advice one = expect_advice(text, {}, 0, on_threads(1));
    const Advice other = expect_advice(text, {}, 0, on_threads(5));
    EXPECT_EQ(one.advised, other.advised);
    expect_same(one.rungs, other.rungs);
    expect_same(one.ways_out, other.ways_out);
  }
}

// The search for ways out is the last to be asked whether to stop.
TEST(Advice, SaysWhenItWasStoppedWhereItSearchedForWaysOut) {
  const std::string text = scenario("llama-2-13b", kH100, R"("global_batch":64)");
  int asked = 0, last = std::numeric_limits<int>::max();
  SearchOptions search = on_threads(1);
  search.stop = [&] { return ++asked >= last; };
  const Advice whole = expect_advice(text, {}, 0, search);
  EXPECT_FALSE(whole.interrupted);
  ASSERT_FALSE(whole.ways_out.empty());
  last = std::exchange(asked, 0) - 1;
  const Advice stopped = expect_advice(text, {}, 0, search);
  expect_same(stopped.rungs, whole.rungs);
  EXPECT_TRUE(stopped.interrupted);
}

TEST(Advice, EndsWithAdviceWhateverItsTime) {
  SearchOptions search = on_threads(2);
  search.deadline = std::chrono::steady_clock::now();
  search.first_answer_s = 1e6;
  for (const std::string& text :
       {small_model(), scenario("llama-2-70b", R"("dgx-h100x8")", R"("global_batch":64)")}) {
    const Advice advice = expect_advice(text, {}, 0, search);
    EXPECT_TRUE(advice.interrupted);
    ASSERT_TRUE(advice.advised) << text;
    EXPECT_TRUE(advice.rungs[*advice.advised].meets());
  }
}

TEST(Demands, WithoutAPriceABudgetIsNoDemand) {
  const auto planner = planner_of(small_model(R"(,"run":{"tokens":1e9,"budget":1000})"));
  const Scenario& base = planner->space().base();
  const Errors errors = check_demands(demands_of(base, 0, {}), base, {});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "run.price_per_gpu_hour");
}

}  // namespace
}  // namespace stepcast
