// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/fit_grouped.h"
#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/published.h"
#include "calibrate/published_tables.h"
#include "core/each.h"
#include "core/statistics.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "operation/attention_parts.h"

namespace stepcast {
namespace {

using testing::accelerator;
using testing::published;

TEST(LeastSquares, FindsTheParametersOfAPowerLaw) {
  // y = a x^b without noise has one minimum, at (a, b).
  const std::vector<double> xs = {1, 2, 4, 8, 16};
  const auto found =
      fit_least_squares({{1, 1e-3, 1e3}, {1, 0.1, 10}}, [&](const std::vector<double>& p) {
        std::vector<double> out;
        for (const double x : xs) {
          out.push_back(std::log(p[0] * std::pow(x, p[1]) / (3 * std::pow(x, 0.5))));
        }
        return out;
      });
  EXPECT_NEAR(found[0], 3, 1e-4);
  EXPECT_NEAR(found[1], 0.5, 1e-4);
}

TEST(LeastSquares, OutliersDoNotDragTheFit) {
  const auto found = fit_least_squares({{1, 1e-3, 1e3}}, [](const std::vector<double>& p) {
    std::vector<double> out(20, std::log(p[0] / 2));
    out.push_back(std::log(p[0] / 20));  // one of 21 says ten times as much
    return out;
  });
  EXPECT_NEAR(found[0], 2, 0.02);
}

TEST(LeastSquares, StaysInsideItsBounds) {
  const auto found = fit_least_squares({{1, 0.5, 1.5}}, [](const std::vector<double>& p) {
    return std::vector<double>{std::log(p[0] / 7)};
  });
  EXPECT_NEAR(found[0], 1.5, 1e-6);
}

// Samples of `truth` on an A100, of the shapes that a training step has, with `noise` in the log.
std::vector<GemmSample> synthetic_samples(const GemmFit& truth, const Accelerator& device,
                                          double noise) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> error(0, noise);
  std::vector<GemmSample> out;
  for (const std::int64_t m : {1024, 2048, 4096, 16384}) {
    for (const std::int64_t n : {512, 1536, 4096, 6144, 12288}) {
      for (const std::int64_t k : {256, 1024, 4096, 16384}) {
        for (const GemmRole role :
             {GemmRole::kForward, GemmRole::kInputGradient, GemmRole::kWeightGradient}) {
          const Gemm gemm{role, 1, m, n, k, DataType::kBf16, DataType::kBf16, false};
          const double time = gemm_form_time(truth, device, gemm).value() * std::exp(error(random));
          out.push_back({role, 1, m, n, k,
                         flops_of(gemm) / time / matrix_peak(device, DataType::kBf16).value()});
        }
      }
    }
  }
  return out;
}

TEST(FitGemm, RecoversTheFormBehindSyntheticSamples) {
  const Accelerator device = accelerator("a100-pcie-80g");
  GemmFit truth;
  truth.efficiency = 0.8;
  truth.k_half = 150;
  truth.tile_half = 30;
  truth.wave_weight = 0.6;
  truth.overhead_s = 4e-6;
  truth.role_factor = {1, 1.05, 1.12};
  GemmFit start;
  start.k_half = 60;
  start.tile_half = 20;
  start.wave_weight = 0.5;
  start.overhead_s = 3e-6;
  start.accumulate_exposed = 0.5;
  const FittedSurface curve = fit_gemm(device, synthetic_samples(truth, device, 0.01), start);
  EXPECT_NEAR(curve.fit.efficiency, 0.8, 0.02);
  EXPECT_NEAR(curve.fit.k_half, 150, 15);
  EXPECT_NEAR(curve.fit.role_factor[1], 1.05, 0.01);
  EXPECT_NEAR(curve.fit.role_factor[2], 1.12, 0.01);
  EXPECT_LT(curve.held_out.median, 0.015);
}

TEST(FitGemm, PredictsHeldOutRowsOfThePublishedTables) {
  const std::map<std::string, double> bounds = {{"a100-pcie-80g", 0.06}, {"b200-sxm6-180g", 0.10}};
  int tables = 0;
  for (const GemmTable& table : published().gemm) {
    const auto bound = bounds.find(table.device);
    if (bound == bounds.end() || table.short_runs) continue;
    GemmFit start;
    start.efficiency = 0.7;
    start.k_half = 60;
    start.tile_half = 20;
    start.wave_weight = 0.5;
    start.overhead_s = 3e-6;
    start.sustained_factor = 1.1;
    start.accumulate_exposed = 0.5;
    const FittedSurface curve = fit_gemm(
        accelerator(table.device), in_fractions(table, accelerator(table.device)).samples, start);
    EXPECT_LT(curve.held_out.median, bound->second) << table.device;
    EXPECT_LT(curve.form.median, bound->second) << table.device;
    EXPECT_LT(std::abs(curve.form.bias), 0.01) << table.device;
    ++tables;
  }
  EXPECT_EQ(tables, 2);
}

TEST(FitGemm, TakesTheCastOutOfFp8RunsOfEngines) {
  const Accelerator device = accelerator("h100-sxm5-80g");
  GemmFit truth;
  truth.efficiency = 0.7;
  truth.k_half = 200;
  truth.tile_half = 20;
  truth.wave_weight = 0.5;
  truth.overhead_s = 4e-6;
  GemmTable table;
  table.precision = DataType::kFp8;
  table.unit = TableUnit::kMicroseconds;
  table.short_runs = true;
  for (const std::int64_t m : {512, 2048, 8192, 32768}) {
    for (const std::int64_t n : {512, 4096, 16384}) {
      for (const std::int64_t k : {512, 2048, 8192}) {
        GemmSample sample{GemmRole::kForward, 1, m, n, k, 0};
        const double product =
            gemm_form_time(truth, device, gemm_of(sample, DataType::kFp8)).value();
        const double cast = 4.0 * static_cast<double>(m * k) / device.memory_bandwidth.value();
        sample.efficiency = (product + cast) * 1e6;
        table.samples.push_back(sample);
      }
    }
  }
  GemmFit start = truth;
  start.efficiency = 0.5;
  start.sustained_factor = 1.01;
  const FittedSurface fitted = fit_gemm_short_runs(device, in_fractions(table, device), start);
  for (const GemmSample& sample : each_of(fitted.samples)) {
    const Gemm gemm = gemm_of(sample, DataType::kFp8);
    const double rate = flops_of(gemm) / gemm_form_time(truth, device, gemm).value();
    EXPECT_NEAR(sample.efficiency * matrix_peak(device, DataType::kFp8).value() / rate, 1, 0.05);
  }
}

// Twice the same form, once alone and once among the products of a step.
TEST(FitGemm, FindsTheGapBetweenProductsAloneAndInAStep) {
  const Accelerator device = accelerator("b200-sxm6-180g");
  GemmFit alone;
  alone.k_half = 80;
  alone.tile_half = 20;
  alone.overhead_s = 3e-6;
  alone.accumulate_exposed = 0.3;
  GemmFit step = alone;
  step.back_to_back = 1.4;
  step.role_factor = {1, 1.05, 1.1};
  const GemmFit found = fit_gemm_in_training(device, synthetic_samples(step, device, 0.01), alone);
  EXPECT_NEAR(found.back_to_back, 1.4, 0.02);
  EXPECT_NEAR(found.role_factor[1], 1.05, 0.01);
  EXPECT_NEAR(found.role_factor[2], 1.1, 0.01);
  EXPECT_EQ(found.efficiency, alone.efficiency);
}

TEST(FitAttention, RecoversTheFormBehindSyntheticPoints) {
  const Accelerator device = accelerator("a100-sxm4-80g");
  AttentionFit truth;
  truth.forward_efficiency = 0.7;
  truth.backward_efficiency = 0.55;
  truth.causal_efficiency = 0.95;
  truth.causal_half_length = 180;
  truth.length_half = truth.backward_length_half = 60;
  truth.blocks_half = truth.backward_blocks_half = 1.5;
  AttentionTable table;
  for (const bool backward : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t heads : {4, 16, 64}) {
        for (const std::int64_t length : {512, 2048, 8192}) {
          const Attention work{backward, 1,   heads,  heads,          length,
                               length,   128, causal, DataType::kBf16};
          const double rate =
              flops_of(work) / attention_form_time(truth, device, work).value() / 312e12;
          table.points.push_back({backward ? AttentionPass::kBackward : AttentionPass::kForward,
                                  {backward, 1, heads, heads, length, 128, causal, rate}});
        }
      }
    }
  }
  AttentionFit start = truth;
  start.forward_efficiency = start.backward_efficiency = 0.5;
  start.causal_half_length = 100;
  start.length_half = start.blocks_half = 3;
  const auto curve = fit_attention(device, attention_measurements(table, device, 1), start);
  EXPECT_NEAR(curve.fit.forward_efficiency, 0.7, 0.02);
  EXPECT_NEAR(curve.fit.backward_efficiency, 0.55, 0.02);
  EXPECT_NEAR(curve.fit.blocks_half, 1.5, 0.15);
  EXPECT_LT(curve.form.p90, 0.05);  // priors hold on to the start a little
}

// A table of engines' calls: 9 bytes move for an element of a key, and every call takes 4 us more.
AttentionTable engine_calls(const AttentionFit& truth, const Accelerator& device) {
  AttentionTable table;
  table.unit = TableUnit::kMicroseconds;
  table.short_runs = true;
  for (const std::int64_t batch : {1, 4}) {
    for (const std::int64_t heads : {8, 32, 96}) {
      for (const std::int64_t kv_heads : {1L, 8L, heads}) {
        for (const std::int64_t length : {512, 2048, 8192}) {
          const Attention work{false,  batch, heads, kv_heads,       length,
                               length, 128,   true,  DataType::kBf16};
          const double kernel = attention_form_time(truth, device, work, Pace::kShortRun).value();
          const double cache = 9.0 * static_cast<double>(batch * kv_heads * length * 128) /
                               device.memory_bandwidth.value();
          table.points.push_back(
              {AttentionPass::kForward,
               {false, batch, heads, kv_heads, length, 128, true, (kernel + cache + 4e-6) * 1e6}});
        }
      }
    }
  }
  return table;
}

TEST(FitAttention, TakesTheCacheOutOfEnginesCallsAndTheStepsClockFromOthers) {
  const Accelerator device = accelerator("h100-sxm5-80g");
  AttentionFit truth;
  truth.forward_efficiency = 0.75;
  truth.backward_efficiency = 0.6;
  truth.causal_half_length = 300;
  truth.length_half = truth.backward_length_half = 100;
  truth.blocks_half = truth.backward_blocks_half = 0.6;
  truth.overhead_s = 3e-6;
  truth.back_to_back = 1.2;
  auto points = attention_measurements(engine_calls(truth, device), device, 1);
  const std::size_t calls = points.size();
  AttentionTable chart;
  for (const bool backward : {false, true}) {
    for (const std::int64_t length : {1024, 4096, 16384}) {
      const Attention work{backward, 16384 / length, 16, 16, length, length, 128,
                           true,     DataType::kBf16};
      const double rate = flops_of(work) / attention_form_time(truth, device, work).value() /
                          matrix_peak(device, DataType::kBf16).value();
      chart.points.push_back({backward ? AttentionPass::kBackward : AttentionPass::kForward,
                              {backward, 16384 / length, 16, 16, length, 128, true, rate}});
    }
  }
  const auto step = attention_measurements(chart, device, 1);
  points.insert(points.end(), step.begin(), step.end());
  AttentionFit start = truth;
  start.forward_efficiency = start.backward_efficiency = 0.5;
  start.back_to_back = 0;
  const AttentionCurve curve = fit_attention_short_runs(device, points, {}, start);
  EXPECT_NEAR(curve.fit.back_to_back, 1.2, 0.03);
  EXPECT_NEAR(curve.fit.backward_efficiency, 0.6, 0.03);
  ASSERT_EQ(curve.samples.size(), calls + 3);  // and the backward points
  for (std::size_t i = 0; i < calls; ++i) {
    const AttentionSample& sample = curve.samples[i];
    const Attention work{false,           sample.batch,    sample.heads, sample.kv_heads,
                         sample.sequence, sample.sequence, 128,          true,
                         DataType::kBf16};
    const double rate = flops_of(work) /
                        attention_form_time(truth, device, work, Pace::kShortRun).value() /
                        matrix_peak(device, DataType::kBf16).value();
    EXPECT_NEAR(sample.efficiency / rate, 1, 0.06) << sample.heads << ' ' << sample.sequence;
  }
}

class FitGrouped : public ::testing::TestWithParam<DataType> {};

TEST_P(FitGrouped, FindsTheProductsBehindCallsThatAlsoMoveTokens) {
  const Accelerator device = accelerator("h100-sxm5-80g");
  GemmFit dense;
  dense.efficiency = 0.8;
  dense.k_half = 150;
  dense.tile_half = 30;
  dense.memory_fraction = 0.8;
  dense.overhead_s = 3e-6;
  const GroupedFit truth{.rate = 0.9, .bandwidth = 1.1};
  GroupedTable table;
  table.precision = GetParam();
  for (const std::int64_t hidden : {2048, 4096, 7168}) {
    for (const std::int64_t inter : {768, 2048}) {
      for (const std::int64_t ranks : {1, 8, 64}) {
        for (const std::int64_t tokens : {1024, 4096, 16384}) {
          const std::int64_t groups = 128 / ranks, rows = tokens * 8 / 128;
          const auto product = [&](std::int64_t n, std::int64_t k) {
            return grouped_form_time(truth, dense, device,
                                     {GemmRole::kForward, groups, rows, n, k, GetParam(),
                                      DataType::kBf16, false})
                .value();
          };
          const double elements = static_cast<double>(tokens * 8 / ranks);
          const double bytes = elements * static_cast<double>(8 * hidden + 5 * inter) +
                               4.0 * static_cast<double>(tokens * hidden);
          table.calls.push_back({hidden, inter, 8, 128, ranks, tokens,
                                 product(2 * inter, hidden) + product(hidden, inter) +
                                     bytes / device.memory_bandwidth.value() + 3e-5});
        }
      }
    }
  }
  table.held_out = table.calls;
  const GroupedCurve curve = fit_grouped(device, table, dense, {});
  EXPECT_NEAR(curve.fit.rate, 0.9, 0.03);
  EXPECT_NEAR(curve.fit.bandwidth, 1.1, 0.03);
  EXPECT_LT(curve.other_models.p90, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Precisions, FitGrouped,
                         ::testing::Values(DataType::kBf16, DataType::kFp8),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace stepcast
