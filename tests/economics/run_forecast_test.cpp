// SPDX-License-Identifier: Apache-2.0
// docs/economics.md.
#include "economics/run_forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "economics/batch_notes.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::scenario_from;

// A scenario of `model` on `nodes` nodes of `cluster`, with `run` given as JSON.
Scenario scenario_of(const std::string& model, const std::string& cluster, int nodes,
                     const std::string& run, int batch = 2048, int sequence = 4096) {
  return scenario_from(R"({"stepcast": 1, "model": ")" + model + R"(", "cluster": {"base": ")" +
                       cluster + R"(", "nodes": )" + std::to_string(nodes) +
                       R"(}, "training": {"global_batch": )" + std::to_string(batch) +
                       R"(, "sequence_length": )" + std::to_string(sequence) +
                       R"(}, "layout": {"tp": 8}, "run": )" + run + "}");
}

constexpr StepTime kStep{Seconds(10), Seconds(9), Seconds(12)};

// 2048 x 4096 = 2^23 tokens a step; nothing fails: 1,000 steps of 10 s on 64 GPUs at 3 dollars.
TEST(RunForecast, TokensBecomeStepsHoursAndDollars) {
  const Scenario scenario =
      scenario_of("llama-3.1-8b", "dgx-h100", 8,
                  R"({"tokens": 8388608000, "price_per_gpu_hour": 3, "failures_per_node_day": 0,
                      "deadline": "3 h", "budget": 500})");
  const RunTerms terms = run_terms(scenario, {});
  EXPECT_EQ(terms.rented_gpus, 64);
  const RunForecast run = forecast_run(terms, kStep);
  EXPECT_EQ(run.goodput.value, 1);
  EXPECT_FALSE(run.interval);
  ASSERT_TRUE(run.length);
  EXPECT_EQ(run.length->steps, 1000);
  EXPECT_DOUBLE_EQ(run.length->wall_s.value, 1e4);
  EXPECT_DOUBLE_EQ(run.length->wall_s.low, 9e3);
  EXPECT_DOUBLE_EQ(run.length->wall_s.high, 1.2e4);
  EXPECT_DOUBLE_EQ(run.length->gpu_hours, 64 * 1e4 / 3600);
  EXPECT_DOUBLE_EQ(run.length->dollars->value, 3 * 64 * 1e4 / 3600);
  EXPECT_DOUBLE_EQ(run.length->dollars->low, 3 * 64 * 9e3 / 3600);
  EXPECT_DOUBLE_EQ(run.length->dollars->high, 3 * 64 * 1.2e4 / 3600);
  EXPECT_DOUBLE_EQ(*run.dollars_per_million_tokens, 3 * 64 * 1e4 / 3600 / 8388.608);
  EXPECT_TRUE(*run.length->meets_deadline);
  EXPECT_FALSE(*run.length->within_budget);
}

// 10,000 s of training: 2 % for evaluation, 10 % thrown away, a tenth of the tokens at twice the
// cost, and an hour before the first step, which a slow step does not stretch.
TEST(RunForecast, ABudgetPaysForWhatStandsBesideTheSteps) {
  const Scenario scenario = scenario_of(
      "llama-3.1-8b", "dgx-h100", 8,
      R"({"tokens": 8388608000, "price_per_gpu_hour": 3, "failures_per_node_day": 0,
          "beside": {"bring_up": "1 h", "evaluation": 0.02, "thrown_away": 0.1,
                     "long_context": {"tokens": 838860800, "token_cost": 2}}})");
  const RunForecast run = forecast_run(run_terms(scenario, {}), kStep);
  ASSERT_TRUE(run.length);
  ASSERT_EQ(run.length->beside.size(), 4u);
  EXPECT_DOUBLE_EQ(run.length->training.value(), 1e4);
  EXPECT_DOUBLE_EQ(run.length->wall_s.value, 1.32e4 + 3600);
  EXPECT_NEAR(run.length->wall_s.low, 0.9 * 1.32e4 + 3600, 1e-6);
  EXPECT_NEAR(run.length->wall_s.high, 1.2 * 1.32e4 + 3600, 1e-6);
  EXPECT_DOUBLE_EQ(run.length->dollars->value, 3 * 64 * (1.32e4 + 3600) / 3600);
}

// The ends of the central 90 % are passed with chances of 5 and 95 %.
TEST(RunForecast, ChancesAreThoseOfTheIntervals) {
  const auto chance = [](const char* deadline, const StepTime& step = kStep) {
    const Scenario scenario = scenario_of(
        "llama-3.1-8b", "dgx-h100", 8,
        std::string(R"({"tokens": 8388608000, "failures_per_node_day": 0, "deadline": ")") +
            deadline + R"("})");
    return *forecast_run(run_terms(scenario, {}), step).length->deadline_chance;
  };
  EXPECT_NEAR(chance("9000 s"), 0.05, 1e-4);
  EXPECT_NEAR(chance("10000 s"), 0.5, 1e-12);
  EXPECT_NEAR(chance("12000 s"), 0.95, 1e-4);
  // The forecast itself is the median, also where nothing lies above it.
  EXPECT_NEAR(chance("10000 s", {Seconds(10), Seconds(9), Seconds(10)}), 0.5, 1e-12);
}

// A run of a minute on one GPU: nothing happens in it, and its cost is as certain as its steps.
TEST(RunForecast, AShortRunHasACertainCost) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": "gpt3-350m",
      "cluster": {"base": "dgx-h100", "gpus": 1},
      "training": {"global_batch": 8, "sequence_length": 1024},
      "run": {"tokens": 49152, "price_per_gpu_hour": 3, "budget": 1, "rented_together": 1}})");
  const RunForecast run =
      forecast_run(run_terms(scenario, {}), {Seconds(10), Seconds(10), Seconds(10)});
  ASSERT_TRUE(run.length && run.length->dollars);
  const FigureRange& dollars = *run.length->dollars;
  EXPECT_NEAR(dollars.value, 60 * 3 / 3600.0, 0.02 * dollars.value);
  EXPECT_NEAR(dollars.low, dollars.value, 1e-3 * dollars.value);
  EXPECT_NEAR(dollars.high, dollars.value, 1e-3 * dollars.value);
  EXPECT_EQ(*run.length->budget_chance, 1);
}

// In a long run the gamma distribution of what is lost is nearly normal, so the ends are those of
// the central limit theorem: 1.645 deviations away.
TEST(RunForecast, ALongRunScattersAsTheCentralLimitTheoremSays) {
  const Scenario scenario = scenario_of("llama-3.1-70b", "dgx-h100", 128, R"({"tokens": 2e13})");
  const RunTerms terms = run_terms(scenario, {});
  const RunForecast run = forecast_run(terms, kStep);
  ASSERT_TRUE(run.length && run.interval);
  ASSERT_GT(run.length->interruptions, 100);
  const double deviation = std::sqrt(goodput_scatter(terms.hazards.process, *run.interval) /
                                     Seconds(run.length->wall_s.value));
  EXPECT_NEAR(run.goodput.value - run.goodput.low, 1.645 * deviation, 0.15 * deviation);
  EXPECT_NEAR(run.goodput.high - run.goodput.value, 1.645 * deviation, 0.15 * deviation);
}

std::int64_t billed(const std::string& cluster, const std::string& run, const PriceList& prices) {
  return run_terms(scenario_from(R"({"stepcast": 1, "model": "gpt3-350m", "cluster": )" + cluster +
                                 R"(, "training": {"global_batch": 96}, "run": )" + run + "}"),
                   prices)
      .rented_gpus;
}

TEST(RunForecast, BillsAsManyGpusAsAreLetTogether) {
  const PriceList singly{
      {.accelerator = "h100-sxm5-80g", .dollars_per_gpu_hour = 2, .rented_together = 1}};
  const std::string one = R"({"base": "dgx-h100", "gpus": 1})";
  const std::string three = R"({"base": "dgx-h100", "gpus": 3})";
  const std::string twelve = R"({"base": "dgx-h100", "gpus": 12})";
  EXPECT_EQ(billed(one, "{}", {}), 8);  // nothing is known: a whole node
  EXPECT_EQ(billed(one, "{}", singly), 1);
  EXPECT_EQ(billed(one, R"({"price_per_gpu_hour": 9})", singly), 1);
  EXPECT_EQ(billed(three, R"({"rented_together": 2})", {}), 4);
  EXPECT_EQ(billed(twelve, "{}", singly), 16);  // several nodes are whole
  EXPECT_EQ(billed(one, R"({"spare_nodes": 1})", singly), 16);
}

// 64 GPUs at 3 dollars for an hour at least; ten steps take 100 s.
TEST(RunForecast, BillsTheLeastThatAPriceAllows) {
  const PriceList by_hour{
      {.accelerator = "h100-sxm5-80g", .dollars_per_gpu_hour = 3, .least = Seconds(3600)}};
  const Scenario scenario = scenario_of("llama-3.1-8b", "dgx-h100", 8,
                                        R"({"tokens": 83886080, "failures_per_node_day": 0})");
  const RunForecast run = forecast_run(run_terms(scenario, by_hour), kStep);
  ASSERT_TRUE(run.length && run.length->dollars);
  EXPECT_DOUBLE_EQ(run.length->dollars->value, 192);
  EXPECT_DOUBLE_EQ(run.length->dollars->high, 192);
  EXPECT_TRUE(run.length->least_billed);
}

// 50,000 examples of 700 tokens, three times: 105 M tokens.
TEST(RunForecast, TakesExamplesForTokens) {
  const Scenario scenario =
      scenario_of("llama-3.1-8b", "dgx-h100", 8,
                  R"({"examples": 50000, "epochs": 3, "tokens_per_example": 700})");
  EXPECT_DOUBLE_EQ(*run_terms(scenario, {}).tokens, 1.05e8);
}

// 8 nodes of 8 GPUs under tp 8 are 8 replicas: each lost node takes one, an eighth.
TEST(RunForecast, AnElasticRunLosesReplicasAndWaitsForNone) {
  const auto shares = [](const char* elastic) {
    const Scenario scenario = scenario_of(
        "llama-3.1-8b", "dgx-h100", 8,
        std::string(
            R"({"tokens": 1e12, "failures_per_node_day": 0.05, "repair": "12 h", "elastic": )") +
            elastic + "}");
    return forecast_run(run_terms(scenario, {}), kStep).shares;
  };
  const WallShares waits = shares("false"), goes_on = shares("true");
  EXPECT_GT(waits.waiting, 0.1);
  EXPECT_EQ(waits.reduced, 0);
  EXPECT_EQ(goes_on.waiting, 0);
  // A load of 8 x 0.05 x 0.5 = 0.2 nodes away on average, an eighth of the training each.
  EXPECT_NEAR(goes_on.reduced, 0.2 / 8 * (goes_on.useful + goes_on.reduced), 1e-3);
  EXPECT_GT(goes_on.useful, waits.useful);
}

TEST(RunForecast, NoRunStaysWithinABudgetOfNothing) {
  const Scenario scenario =
      scenario_of("llama-3.1-8b", "dgx-h100", 8,
                  R"({"tokens": 8388608000, "price_per_gpu_hour": 3, "failures_per_node_day": 0,
                      "budget": 0})");
  const RunForecast run = forecast_run(run_terms(scenario, {}), kStep);
  EXPECT_FALSE(*run.length->within_budget);
  EXPECT_EQ(*run.length->budget_chance, 0);
}

TEST(RunForecast, ABegunStepIsAWholeOne) {
  const Scenario scenario = scenario_of("llama-3.1-8b", "dgx-h100", 1,
                                        R"({"tokens": 8388609, "failures_per_node_day": 0})");
  EXPECT_EQ(forecast_run(run_terms(scenario, {}), kStep).length->steps, 2);
}

// Restarts take 30 days and 640 failures come a day: no restart completes, and no step ever counts.
TEST(RunForecast, ARunWithoutGoodputHasNoLengthAndNoPrice) {
  const Scenario scenario =
      scenario_of("llama-3.1-8b", "dgx-h100", 64,
                  R"({"tokens": 8388608000, "price_per_gpu_hour": 3, "failures_per_node_day": 10,
          "restart": "30 d", "deadline": "30 d", "budget": 500})");
  const RunForecast run = forecast_run(run_terms(scenario, {}), kStep);
  EXPECT_EQ(run.goodput.value, 0);
  EXPECT_EQ(run.goodput.low, 0);
  EXPECT_EQ(run.goodput.high, 0);
  EXPECT_FALSE(run.length);
  EXPECT_FALSE(run.dollars_per_million_tokens);
}

// Grattafiori et al. 2024, section 3.3.4: over 90 % effective training time in 54 days with 419
// interruptions. Step and checkpoint as published (405B, 14 bytes per parameter, 2 TB/s).
TEST(RunForecast, Llama3TrainsOver90PercentOfTheTime) {
  const Scenario scenario =
      scenario_of("llama-3.1-405b", "grand-teton-h100-96g", 2048,
                  R"({"tokens": 15.6e12, "checkpoint": {"bandwidth": "2000 GB/s"}})", 2048, 8192);
  RunTerms terms = run_terms(scenario, {});
  EXPECT_NEAR(1 / terms.hazards.process.failures.value() / 3600, 3.09, 0.01);
  const RunForecast run = forecast_run(terms, {Seconds(5), Seconds(5), Seconds(5)});
  EXPECT_GT(run.goodput.value, 0.90);
  EXPECT_LT(run.goodput.value, 0.96);  // restarts alone take 10 min of 3.09 h
  EXPECT_LT(run.goodput.low, run.goodput.value);
  // 419 interruptions in 54 days.
  EXPECT_NEAR(run.length->interruptions / (run.length->wall_s.value / 86400), 419.0 / 54, 0.05);
}

// Touvron et al. 2023 (arXiv 2302.13971), table 15: 1,022,362 GPU-hours of A100 at 400 W and a PUE
// of 1.1 are 449 MWh.
TEST(RunForecast, TheEnergyOfLlama65BIsThePublishedOne) {
  const Scenario scenario =
      scenario_of("llama-65b", "dgx-a100-80g", 256, R"({"tokens": 1.4e12})", 2048, 2048);
  const RunTerms terms = run_terms(scenario, {});
  const Joules energy = terms.power * Seconds(1'022'362.0 / 2048 * 3600);
  EXPECT_NEAR(energy.value() / 3.6e9, 449, 1.5);
}

// bf16 parameters, fp32 master weights and two moments are 14 bytes per parameter.
TEST(RunTerms, ACheckpointHoldsParametersMasterWeightsAndMoments) {
  const Scenario scenario = scenario_of("llama-3.1-405b", "dgx-h100", 16, "{}");
  const RunTerms terms = run_terms(scenario, {});
  EXPECT_DOUBLE_EQ(terms.checkpoint.value(),
                   14.0 * static_cast<double>(count_parameters(scenario.model).total()));
  EXPECT_NEAR(terms.hazards.process.checkpoint.value(),
              terms.checkpoint.value() / (16 * 2.3e12 / 40 / 48), 1e-9);
}

TEST(RunTerms, WhatTheScenarioGivesIsNotAssumed) {
  const Scenario all = scenario_of(
      "llama-3.1-8b", "dgx-h100", 2,
      R"({"price_per_gpu_hour": 2, "failures_per_node_day": 0.01, "restart": "5 min", "pue": 1.2,
          "repair": "0 s",
          "checkpoint": {"bytes": "1 TB", "bandwidth": "10 GB/s", "interval": "1 h"}})");
  const RunTerms terms = run_terms(all, {});
  EXPECT_TRUE(terms.assumptions.empty());
  EXPECT_EQ(terms.hazards.process.checkpoint, Seconds(100));
  EXPECT_EQ(*forecast_run(terms, kStep).interval, Seconds(3600));
  const Scenario none = scenario_of("llama-3.1-8b", "dgx-h100", 2, "{}");
  const PriceList prices{{.accelerator = "h100-sxm5-80g", .dollars_per_gpu_hour = 2}};
  EXPECT_EQ(run_terms(none, prices).assumptions.size(), 7U);
}

// Spot nodes have the spot price or none; nodes that are taken back have it where one is listed.
TEST(RunTerms, HowGpusAreRentedDecidesTheirPrice) {
  PriceList prices{{.accelerator = "h100-sxm5-80g", .dollars_per_gpu_hour = 3, .reserved = 2}};
  const auto terms = [&](const char* run) {
    return run_terms(scenario_of("llama-3.1-8b", "dgx-h100", 2, run), prices);
  };
  constexpr const char* kTaken = R"({"preemption": {"per_node_day": 0.1}})";
  EXPECT_EQ(terms("{}").dollars_per_gpu_hour, 3);
  EXPECT_EQ(terms(R"({"rental": "reserved"})").dollars_per_gpu_hour, 2);
  EXPECT_FALSE(terms(R"({"rental": "spot"})").dollars_per_gpu_hour);
  EXPECT_EQ(terms(R"({"rental": "spot"})").no_price, "no spot price of h100-sxm5-80g is listed");
  EXPECT_EQ(terms(kTaken).dollars_per_gpu_hour, 3);
  EXPECT_TRUE(terms(kTaken).assumptions.front().basis.starts_with("on demand, although"));
  prices.front().spot = 1;
  EXPECT_EQ(terms(kTaken).dollars_per_gpu_hour, 1);
  EXPECT_EQ(terms(R"({"rental": "spot"})").dollars_per_gpu_hour, 1);
  // Whoever states how they rent means it.
  const char* stated = R"({"rental": "on_demand", "preemption": {"per_node_day": 0.1}})";
  EXPECT_EQ(terms(stated).dollars_per_gpu_hour, 3);
  EXPECT_EQ(terms(R"({"rental": "spot", "price_per_gpu_hour": 9})").dollars_per_gpu_hour, 9);
}

// DeepSeek LLM 7B, 2 T tokens: 2304 sequences of 4096 (arXiv 2401.02954, table 2).
TEST(BatchNotes, ProposeTheBatchOfThePublishedRunThatTheyAreOf) {
  EXPECT_NEAR(proposed_batch_tokens(6.9e9, 2e12) / (2304 * 4096.0), 1, 0.05);
}

TEST(RunTerms, WithoutAPriceNothingIsSaidOfMoney) {
  const Scenario scenario = scenario_of("llama-3.1-8b", "dgx-h100", 2, R"({"tokens": 1e12})");
  const RunForecast run = forecast_run(run_terms(scenario, {}), kStep);
  EXPECT_FALSE(run.dollars_per_million_tokens);
  EXPECT_FALSE(run.length->dollars);
}

TEST(RunTerms, SparesAreRentedAndPartOfANodeIsANode) {
  const Scenario scenario = scenario_from(R"({"stepcast": 1, "model": "llama-3.1-8b",
      "cluster": {"base": "dgx-h100", "gpus": 12}, "training": {"global_batch": 12},
      "run": {"spare_nodes": 3}})");
  const RunTerms terms = run_terms(scenario, {});
  EXPECT_EQ(terms.gpus, 12);
  EXPECT_EQ(terms.rented_gpus, 40);
}

// 1 TB at 10 GB/s takes 100 s: two minutes are enough to save it, one is not.
TEST(RunTerms, AWarningTooShortForACheckpointIsNone) {
  const auto hazards = [](const std::string& notice) {
    const Scenario scenario = scenario_of(
        "llama-3.1-8b", "dgx-h100", 10,
        R"({"failures_per_node_day": 0.1, "preemption": {"per_node_day": 0.5, "notice": ")" +
            notice + R"("}, "checkpoint": {"bytes": "1 TB", "bandwidth": "10 GB/s"}})",
        2050);
    return run_terms(scenario, {}).hazards;
  };
  EXPECT_DOUBLE_EQ(hazards("2 min").process.preemptions.value() * 86400, 5);
  EXPECT_DOUBLE_EQ(hazards("2 min").process.failures.value() * 86400, 1);
  EXPECT_EQ(hazards("1 min").process.preemptions.value(), 0);
  EXPECT_DOUBLE_EQ(hazards("1 min").process.failures.value() * 86400, 6);
  EXPECT_DOUBLE_EQ(hazards("1 min").node_losses.value() * 86400, 6);
}

// B* / L^(1/0.21) with B* = 2.1e8: 7.7 M tokens at a loss of 2.
TEST(BatchNotes, TheCriticalBatchIsKaplans) {
  EXPECT_NEAR(critical_batch_tokens(2) / 1e6, 7.74, 0.01);
  EXPECT_NEAR(critical_batch_tokens(1), 2.1e8, 1);
}

// Dollars are those of all islands, and so are the tokens of a step.
TEST(RunTerms, AreOfAllIslands) {
  const auto terms = [](int nodes, const std::string& outer) {
    return run_terms(scenario_from(R"({"stepcast": 1, "model": "gpt3-350m", "cluster":
        {"base": "dgx-h100", "nodes": )" +
                                   std::to_string(nodes) + R"(}, "training": {"global_batch": 64)" +
                                   outer + "}}"),
                     {});
  };
  const RunTerms all = terms(8, R"(, "outer": {"islands": 4})"), one = terms(2, "");
  EXPECT_EQ(all.gpus, 4 * one.gpus);
  EXPECT_EQ(all.tokens_per_step, 4 * one.tokens_per_step);
}

}  // namespace
}  // namespace stepcast
