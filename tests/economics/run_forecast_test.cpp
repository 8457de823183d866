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
          "checkpoint": {"bytes": "1 TB", "bandwidth": "10 GB/s", "interval": "1 h"}})");
  const RunTerms terms = run_terms(all, {});
  EXPECT_TRUE(terms.assumptions.empty());
  EXPECT_EQ(terms.hazards.process.checkpoint, Seconds(100));
  EXPECT_EQ(*forecast_run(terms, kStep).interval, Seconds(3600));
  const Scenario none = scenario_of("llama-3.1-8b", "dgx-h100", 2, "{}");
  const PriceList prices{{.accelerator = "h100-sxm5-80g", .dollars_per_gpu_hour = 2}};
  EXPECT_EQ(run_terms(none, prices).assumptions.size(), 6U);
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

}  // namespace
}  // namespace stepcast
