// SPDX-License-Identifier: Apache-2.0
// A forecast's own trace with one planted fault is diagnosed by the scenario without it. The fault
// must be the first that is named; without a fault nothing may be named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/each.h"
#include "diagnose/made_trace.h"
#include "plan/what_if.h"
#include "report/diagnosis_report.h"

namespace stepcast::testing {
namespace {

// A run of the shipped models and clusters.
struct Case {
  const char* model = "llama-3.1-8b";
  const char* cluster = "dgx-h100x1";
  const char* framework = "megatron";
  int batch = 16;
  const char* layout = R"("tp": 2)";
};

Scenario scenario_of(const Case& c) {
  return scenario_from(fmt::format(
      R"({{"stepcast": 1, "model": "{}", "cluster": "{}", "training": {{"framework": "{}",
          "global_batch": {}, "sequence_length": 4096}}, "layout": {{{}}}}})",
      c.model, c.cluster, c.framework, c.batch, c.layout));
}

constexpr const char* kOverlapped =
    R"("tp": 2, "zero": 1, "overlap": {"grad_reduce": true, "param_gather": true})";
constexpr const char* kNotOverlapped =
    R"("tp": 2, "zero": 1, "overlap": {"grad_reduce": false, "param_gather": false})";

const Case kTensor{};
const Case kAllTensor{"llama-3.1-8b", "dgx-h100x1", "megatron", 8, R"("tp": 8)"};
const Case kPipeline{"llama-3.1-8b", "dgx-h100x2", "megatron", 32, R"("tp": 2, "pp": 2)"};
const Case kSharded{"llama-3.1-8b", "dgx-h100x2", "fsdp", 32, R"("zero": 3)"};
const Case kExperts{"mixtral-8x7b", "dgx-h100x4", "megatron", 64, R"("tp": 1, "ep": 8, "pp": 4)"};

std::string told(const Diagnosis& diagnosis) {
  std::string out = diagnosis_verdict(diagnosis) + "\n";
  for (const Gap& gap : diagnosis.gaps) {
    out += fmt::format("{} {:+.2f} %: {}\n", name_of(gap.cause),
                       100 * gap.seconds / diagnosis.measured_s, gap_sentence(gap, diagnosis));
  }
  return out;
}

void expect_first(const Diagnosis& diagnosis, GapCause cause, const std::string& what) {
  ASSERT_FALSE(diagnosis.gaps.empty()) << told(diagnosis);
  const Gap& first = diagnosis.gaps.front();
  EXPECT_EQ(name_of(first.cause), std::string(name_of(cause))) << told(diagnosis);
  EXPECT_NE(first.what.find(what), std::string::npos) << told(diagnosis);
}

Trace with_slower(const Case& c, const char* resource) {
  const auto slower = apply_what_ifs(scenario_of(c), {resource}, source_folders());
  EXPECT_TRUE(slower.has_value()) << to_string(slower.error());
  return forecast_trace(*slower);
}

bool is_named(const Trace& trace, const TraceWork& work, std::string_view name) {
  return work.message < 0 && trace.name_of(work.name) == name;
}

// --- nothing planted

TEST(Diagnose, NamesNothingInAForecastsOwnTrace) {
  for (const Case& c : each_of(std::vector{kTensor, kAllTensor, kPipeline, kSharded, kExperts})) {
    const Scenario scenario = scenario_of(c);
    const Diagnosis diagnosis = diagnosis_of(scenario, {forecast_trace(scenario)});
    EXPECT_TRUE(diagnosis.gaps.empty()) << c.layout << told(diagnosis);
    EXPECT_NEAR(diagnosis.measured_s, diagnosis.forecast_s, 1e-9);
    EXPECT_GT(diagnosis.accounted, 0.95);
  }
}

// Shapes tell whose trace it is: of the weights of another model nothing is diagnosed.
TEST(Diagnose, RefusesATraceOfAnotherModel) {
  const Scenario scenario = scenario_of({});  // 4,096 wide, an MLP of 14,336, of which a rank half
  Trace trace = forecast_trace(scenario);
  const auto told_of = [&](std::vector<ProductShape> products) {
    trace.products = std::move(products);
    const auto out =
        diagnose(scenario, traced_prediction(scenario), forecast_trace(scenario), {trace});
    return out ? std::string() : out.error().front().message;
  };
  // Its own weights on half the tokens, and one of something else.
  EXPECT_EQ(told_of({{1, 2048, 14336, 4096}, {1, 2048, 4096, 7168}, {1, 11, 13, 17}}), "");
  EXPECT_EQ(told_of({{1, 4096, 14336, 4096},
                     {1, 4096, 7680, 2560},
                     {1, 4096, 2560, 6912},
                     {1, 4096, 2560, 20480}}),
            "is not of this model: 1 of 4 products match");
}

TEST(Diagnose, NamesNothingWhereKernelsVaryByHalfAPercent) {
  int i = 0;
  const Trace trace = slowed(forecast_trace(scenario_of(kAllTensor)),
                             [&](const Trace&, const TraceWork&) { return ++i % 2 ? 1.005 : 1; });
  EXPECT_TRUE(diagnosis_of(scenario_of(kAllTensor), {trace}).gaps.empty());
}

TEST(Diagnose, PartsAddUpToBothSteps) {
  for (const Case& c : each_of(std::vector{kTensor, kPipeline, kSharded})) {
    const Scenario scenario = scenario_of(c);
    const Trace trace =
        with_gaps(forecast_trace(scenario), 3, [](const Trace&, const TraceWork&) { return true; });
    const Diagnosis diagnosis = diagnosis_of(scenario, {trace});
    double forecast = 0, measured = 0;
    for (const ComparedPart& one : each_of(diagnosis.parts)) {
      forecast += one.forecast_s;
      measured += one.measured_s;
    }
    EXPECT_NEAR(forecast, diagnosis.forecast_s, 1e-6) << c.layout;
    EXPECT_NEAR(measured, diagnosis.measured_s, 1e-6) << c.layout;
  }
}

// --- slow links

struct SlowLink {
  Case run;
  const char* resource;
  const char* group;
};

class SlowLinks : public ::testing::TestWithParam<SlowLink> {};

TEST_P(SlowLinks, AreNamedFirst) {
  const SlowLink& c = GetParam();
  const Diagnosis diagnosis = diagnosis_of(scenario_of(c.run), {with_slower(c.run, c.resource)});
  expect_first(diagnosis, GapCause::kSlowLink, c.group);
}

INSTANTIATE_TEST_SUITE_P(Planted, SlowLinks,
                         ::testing::Values(SlowLink{kTensor, "scale_up=-50%", "dp"},
                                           SlowLink{kAllTensor, "scale_up=-40%", "tp"},
                                           SlowLink{kSharded, "nic=-70%", "dp"},
                                           SlowLink{kPipeline, "nic=-90%", "pp"},
                                           SlowLink{kExperts, "scale_up=-60%", "ep"}));

// --- stragglers

struct Straggler {
  std::int64_t rank;
  double slower;
};

class Stragglers : public ::testing::TestWithParam<Straggler> {};

TEST_P(Stragglers, AreNamedFirst) {
  const Straggler& c = GetParam();
  const Scenario scenario = scenario_of(kAllTensor);
  const auto [usual, slow] = with_straggler(forecast_trace(scenario), c.rank, c.slower);
  const Diagnosis diagnosis = diagnosis_of(scenario, {usual, slow});
  expect_first(diagnosis, GapCause::kStraggler, "");
  ASSERT_TRUE(diagnosis.gaps.front().rank.has_value());
  EXPECT_EQ(diagnosis.gaps.front().rank->value, c.rank);
  EXPECT_NEAR(diagnosis.gaps.front().ratio, c.slower, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Planted, Stragglers,
                         ::testing::Values(Straggler{1, 1.3}, Straggler{5, 1.1}, Straggler{7, 2}));

// --- slow kernels

struct SlowKernel {
  Case run;
  const char* name;
  double slower;
};

class SlowKernels : public ::testing::TestWithParam<SlowKernel> {};

TEST_P(SlowKernels, AreNamedFirst) {
  const SlowKernel& c = GetParam();
  const Scenario scenario = scenario_of(c.run);
  const Trace trace =
      slowed(forecast_trace(scenario), [&](const Trace& all, const TraceWork& work) {
        return is_named(all, work, c.name) ? c.slower : 1;
      });
  std::string words = c.name;
  std::ranges::replace(words, '_', ' ');
  expect_first(diagnosis_of(scenario, {trace}), GapCause::kKernels, words);
}

INSTANTIATE_TEST_SUITE_P(Planted, SlowKernels,
                         ::testing::Values(SlowKernel{kAllTensor, "mlp_up", 2},
                                           SlowKernel{kAllTensor, "attention", 2},
                                           SlowKernel{kSharded, "mlp_down", 2},
                                           SlowKernel{kTensor, "qkv", 3}));

// A profiler that records no shapes sees it so: products have one name, and nothing has a phase.
Trace as_profiled(Trace trace) {
  const ForecastNames names(scenario_of(kAllTensor));
  trace.is_forecast = false;
  const auto product = static_cast<std::int32_t>(trace.names.size());
  trace.names.insert(trace.names.end(), {"nvjet_tst_256x128_64x4_TNT", "flash_fwd_kernel",
                                         "vectorized_elementwise_kernel", "multi_tensor_apply"});
  for (TraceWork& work : trace.works) {
    const NamedOperation* known =
        work.message >= 0 ? nullptr
                          : names.find(trace.name_of(work.name), trace.name_of(work.phase));
    const auto family = known == nullptr ? KernelFamily::kMemoryBound : known->family;
    if (work.message < 0) {
      work.name = product + static_cast<std::int32_t>(family == KernelFamily::kProducts    ? 0
                                                      : family == KernelFamily::kAttention ? 1
                                                      : family == KernelFamily::kOptimizer ? 3
                                                                                           : 2);
    } else {
      TraceMessage& message = trace.messages[static_cast<std::size_t>(work.message)];
      const NamedOperation* call = names.find(message.collective, trace.name_of(work.phase));
      if (call != nullptr && call->message) {
        message.collective = name_of(call->message->kind);
        message.group_size = names.grid().group_size(call->message->group);
      }
    }
    work.phase = TraceWork::kNone;
    work.micro_batch = TraceWork::kNone;
  }
  return trace;
}

TEST(Diagnose, TellsProductsApartByTheirOrder) {
  const Scenario scenario = scenario_of(kAllTensor);
  const Trace usual = as_profiled(forecast_trace(scenario));
  const Diagnosis nothing = diagnosis_of(scenario, {usual});
  EXPECT_TRUE(nothing.gaps.empty()) << told(nothing);
  EXPECT_EQ(nothing.style, LabelStyle::kProducts);
  const Trace slow =
      as_profiled(slowed(forecast_trace(scenario), [&](const Trace& all, const TraceWork& work) {
        return is_named(all, work, "mlp_down") ? 2.0 : 1;
      }));
  expect_first(diagnosis_of(scenario, {slow}), GapCause::kKernels, "mlp_down");
}

// --- late hosts

struct LateHost {
  Case run;
  const char* before;
  double gap_us;
};

class LateHosts : public ::testing::TestWithParam<LateHost> {};

TEST_P(LateHosts, AreNamedFirst) {
  const LateHost& c = GetParam();
  const Scenario scenario = scenario_of(c.run);
  const Trace trace = with_gaps(
      forecast_trace(scenario), c.gap_us,
      [&](const Trace& all, const TraceWork& work) { return is_named(all, work, c.before); });
  expect_first(diagnosis_of(scenario, {trace}), GapCause::kHost, "");
}

INSTANTIATE_TEST_SUITE_P(Planted, LateHosts,
                         ::testing::Values(LateHost{kAllTensor, "attention_norm", 100},
                                           LateHost{kAllTensor, "embedding", 20000},
                                           LateHost{kTensor, "attention", 200}));

// --- lost overlap

struct LostOverlap {
  Case stated, run;
  const char* group;
};

class LostOverlaps : public ::testing::TestWithParam<LostOverlap> {};

TEST_P(LostOverlaps, AreNamedFirst) {
  const LostOverlap& c = GetParam();
  const Diagnosis diagnosis =
      diagnosis_of(scenario_of(c.stated), {forecast_trace(scenario_of(c.run))});
  expect_first(diagnosis, GapCause::kLostOverlap, c.group);
}

INSTANTIATE_TEST_SUITE_P(
    Planted, LostOverlaps,
    ::testing::Values(LostOverlap{{"llama-3.1-8b", "dgx-h100x4", "megatron", 64, kOverlapped},
                                  {"llama-3.1-8b", "dgx-h100x4", "megatron", 64, kNotOverlapped},
                                  "dp"},
                      LostOverlap{{"llama-3.1-8b", "dgx-h100x4", "megatron", 64, kOverlapped},
                                  {"llama-3.1-8b", "dgx-h100x4", "megatron", 64,
                                   R"("tp": 2, "zero": 1, "overlap": {"grad_reduce": true,
                        "param_gather": false})"},
                                  "all-gather over dp"},
                      LostOverlap{{"llama-2-13b", "dgx-a100-80gx4", "megatron", 64, kOverlapped},
                                  {"llama-2-13b", "dgx-a100-80gx4", "megatron", 64, kNotOverlapped},
                                  "dp"}));

// --- smaller batches

TEST(Diagnose, NamesASmallerBatchFirst) {
  Case run = kTensor;
  run.batch = 8;
  const Diagnosis diagnosis =
      diagnosis_of(scenario_of(kTensor), {forecast_trace(scenario_of(run))});
  expect_first(diagnosis, GapCause::kBatch, "");
  EXPECT_NEAR(diagnosis.gaps.front().ratio, 0.5, 0.01);
}

TEST(Diagnose, NamesSmallerMicroBatchesFirst) {
  Case stated = kTensor, run = kTensor;
  stated.layout = R"("tp": 2, "micro_batch": 2)";
  run.batch = 8;
  const Diagnosis diagnosis = diagnosis_of(scenario_of(stated), {forecast_trace(scenario_of(run))});
  expect_first(diagnosis, GapCause::kBatch, "");
  EXPECT_NEAR(diagnosis.gaps.front().ratio, 0.5, 0.01);
}

}  // namespace
}  // namespace stepcast::testing
