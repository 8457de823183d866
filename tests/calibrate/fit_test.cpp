// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/fit_grouped.h"
#include "calibrate/fit/least_squares.h"
#include "calibrate/fit/published.h"
#include "calibrate/fit/shipped.h"
#include "calibrate/profile_writer.h"
#include "core/each.h"
#include "core/statistics.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "places.h"

namespace stepcast {
namespace {

const std::string kRoot = source_folder();
// Median error of models that were held out. Blackwell's engines choose among more kernels.
constexpr double kGroupedOnHopper = 0.08, kGroupedOnBlackwell = 0.16;

Accelerator accelerator(const std::string& name) {
  const auto found = find_accelerator(name, kRoot + "/topologies");
  EXPECT_TRUE(found) << to_string(found.error());
  return *found;
}

const Published& published() {
  static const Result<Published> tables = read_published(kRoot + "/calibrate/published");
  EXPECT_TRUE(tables) << to_string(tables.error());
  return *tables;
}

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

TEST(FitGrouped, FindsTheProductsBehindCallsThatAlsoMoveTokens) {
  const Accelerator device = accelerator("h100-sxm5-80g");
  GemmFit dense;
  dense.efficiency = 0.8;
  dense.k_half = 150;
  dense.tile_half = 30;
  dense.memory_fraction = 0.8;
  dense.overhead_s = 3e-6;
  const GroupedFit truth{0.9, 1.1};
  GroupedTable table;
  for (const std::int64_t hidden : {2048, 4096, 7168}) {
    for (const std::int64_t inter : {768, 2048}) {
      for (const std::int64_t ranks : {1, 8, 64}) {
        for (const std::int64_t tokens : {1024, 4096, 16384}) {
          const std::int64_t groups = 128 / ranks, rows = tokens * 8 / 128;
          const auto product = [&](std::int64_t n, std::int64_t k) {
            return grouped_form_time(truth, dense, device,
                                     {GemmRole::kForward, groups, rows, n, k, DataType::kBf16,
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
  const GroupedCurve curve = fit_grouped(device, table, dense);
  EXPECT_NEAR(curve.fit.rate, 0.9, 0.03);
  EXPECT_NEAR(curve.fit.bandwidth, 1.1, 0.03);
  EXPECT_LT(curve.other_models.p90, 0.02);
}

std::map<std::string, Accelerator> accelerators_by_name() {
  const auto accelerators = list_accelerators(kRoot + "/topologies");
  std::map<std::string, Accelerator> by_name;
  for (const Accelerator& one : *accelerators) by_name[one.name] = one;
  return by_name;
}

TEST(Shipping, AFitOfAttentionBeginsWithAnEarlierOne) {
  Published turned = published();
  ASSERT_GT(turned.attention_fits.size(), 2u);
  std::swap(turned.attention_fits[0], turned.attention_fits[1]);
  const auto shipped = ship_profiles(turned, accelerators_by_name());
  ASSERT_FALSE(shipped);
  ASSERT_EQ(shipped.error().size(), 1u);
  EXPECT_EQ(shipped.error().front().path, "attention_fits");
}

class Shipped : public ::testing::Test {
 protected:
  static const std::vector<ShippedProfile>& profiles() {
    static const std::vector<ShippedProfile> all =
        *ship_profiles(published(), accelerators_by_name());
    return all;
  }
  static const Profile& profile(const std::string& name) {
    const auto found = std::find_if(profiles().begin(), profiles().end(),
                                    [&](const auto& one) { return one.profile.name == name; });
    EXPECT_NE(found, profiles().end()) << name;
    return found->profile;
  }
};

TEST_F(Shipped, ProfilesAreWhatTheFitterWrites) {
  ASSERT_GT(profiles().size(), 15u);
  for (const ShippedProfile& shipped : each_of(profiles())) {
    std::ifstream file(kRoot + "/calibrate/profiles/" + shipped.profile.name + ".json");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), profile_text(shipped))
        << shipped.profile.name << ": run stepcast-fit and commit what it writes";
  }
}

TEST_F(Shipped, ProfilesReadBackAsTheyWereFitted) {
  for (const ShippedProfile& shipped : each_of(profiles())) {
    const Profile& fitted = shipped.profile;
    const auto read = load_profile(fitted.name, kRoot + "/calibrate/profiles");
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->gemm_samples.size(), fitted.gemm_samples.size());
    EXPECT_NEAR(read->gemm.efficiency / fitted.gemm.efficiency, 1, 1e-3);
    EXPECT_NEAR(read->gemm.overhead_s / fitted.gemm.overhead_s, 1, 1e-3);
    EXPECT_NEAR(read->attention.forward_efficiency / fitted.attention.forward_efficiency, 1, 1e-3);
    EXPECT_EQ(read->attention_variants.size(),
              std::max<std::size_t>(1, fitted.attention_variants.size()));
    EXPECT_EQ(read->attention_kernel, fitted.attention_kernel);
    // The cases that the host costs were fitted to come behind the profile's own sources.
    ASSERT_GE(read->fitted_on.size(), fitted.fitted_on.size());
    EXPECT_TRUE(
        std::equal(fitted.fitted_on.begin(), fitted.fitted_on.end(), read->fitted_on.begin()));
  }
}

TEST_F(Shipped, ADevicesMatrixRateFollowsItsMaxAchievableMatmul) {
  // H20 from H100: 129.1 of 148 TFLOP/s against 794.5 of 989.
  EXPECT_NEAR(profile("h20-sxm5-96g").gemm.efficiency / profile("h100-sxm5-80g").gemm.efficiency,
              (129.1 / 148) / (794.5 / 989), 1e-9);
  EXPECT_LT(profile("h100-grand-teton-96g").gemm.efficiency,  // 500 W against 700 W
            profile("h100-sxm5-80g").gemm.efficiency);
}

// No fit sees these rows: each has a size that no fitted row has.
TEST_F(Shipped, ProductsOfSizesThatNobodyFittedCostWhatWasMeasured) {
  int tables = 0;
  for (const ShippedProfile& shipped : each_of(profiles())) {
    for (const CurveNote& note : shipped.notes) {
      if (note.operation != "gemm bf16" || shipped.profile.gemm.back_to_back == 0) continue;
      if (note.provenance != Provenance::kInterpolated) continue;  // another device's
      EXPECT_LT(note.held_out.median, 0.041) << shipped.profile.name;
      EXPECT_LT(note.held_out.p90, 0.12) << shipped.profile.name;
      EXPECT_LT(std::abs(note.held_out.bias), 0.015) << shipped.profile.name;
      ++tables;
    }
  }
  EXPECT_EQ(tables, 8);
}

TEST_F(Shipped, AttentionOfSizesThatNobodyFittedCostsWhatWasMeasured) {
  int curves = 0;
  for (const ShippedProfile& shipped : each_of(profiles())) {
    for (const AttentionVariant& variant : shipped.profile.attention_variants) {
      if (variant.fit.back_to_back == 0) continue;
      for (const CurveNote& note : shipped.notes) {
        if (note.operation != "attention " + variant.name) continue;
        if (note.provenance != Provenance::kInterpolated) continue;  // another device's
        EXPECT_LT(note.held_out.median, 0.0605) << shipped.profile.name;
        EXPECT_LT(note.held_out.p90, 0.18) << shipped.profile.name;
        ++curves;
      }
    }
  }
  EXPECT_EQ(curves, 7);
}

TEST_F(Shipped, GroupedProductsOfModelsThatNobodyFittedCostWhatWasMeasured) {
  int curves = 0;
  for (const ShippedProfile& shipped : each_of(profiles())) {
    for (const CurveNote& note : shipped.notes) {
      if (note.operation != "grouped gemm" || note.provenance != Provenance::kInterpolated)
        continue;
      const bool hopper = shipped.profile.name[0] == 'h';
      EXPECT_LT(note.held_out.median, hopper ? kGroupedOnHopper : kGroupedOnBlackwell)
          << shipped.profile.name;
      const auto read = load_profile(shipped.profile.name, kRoot + "/calibrate/profiles");
      ASSERT_TRUE(read) << to_string(read.error());
      EXPECT_NEAR(read->grouped.rate / shipped.profile.grouped.rate, 1, 1e-3);
      EXPECT_NEAR(read->grouped.bandwidth / shipped.profile.grouped.bandwidth, 1, 1e-3);
      EXPECT_EQ(read->grouped_provenance, Provenance::kInterpolated);
      ++curves;
    }
  }
  EXPECT_EQ(curves, 4);
}

// Times of one GPU without rest over those after a rest, which no recorded run has.
TEST_F(Shipped, ALoneGpuHasThePowerLimitThatWasMeasuredOnOne) {
  ASSERT_EQ(published().paces.size(), 2U);
  for (const PaceTable& table : published().paces) {
    const GemmFit& fit = profile(table.device).gemm;
    EXPECT_DOUBLE_EQ(fit.back_to_back_alone, median(table.factors)) << table.device;
    EXPECT_LT(fit.back_to_back_alone, fit.back_to_back);
    EXPECT_EQ(profile(table.device).gemm_fp8.fit.back_to_back_alone, fit.back_to_back_alone);
  }
  EXPECT_EQ(profile("h800-sxm5-80g").gemm.back_to_back_alone,
            profile("h100-sxm5-80g").gemm.back_to_back_alone);
  EXPECT_EQ(profile("h100-pcie-80g").gemm.back_to_back_alone, 0);  // another power limit
  EXPECT_EQ(profile("a100-sxm4-80g").gemm.back_to_back_alone, 0);
}

// The H800 is an H100 with less NVLink, the H200 one with more memory bandwidth.
TEST_F(Shipped, OneChipUnderThreeNamesHasOnePriceOfProducts) {
  const auto seconds = [&](const std::string& device, const Gemm& gemm) {
    return KernelCosts(accelerator(device), profile(device), KernelStyle::kFused)
        .price(gemm)
        .time.value();
  };
  for (const std::int64_t m : {2048, 8192, 131072}) {
    for (const std::int64_t n : {1024, 4096, 14336, 28672}) {
      const Gemm gemm{GemmRole::kForward, 1, m, n, 4096, DataType::kBf16, DataType::kBf16, false};
      const double h100 = seconds("h100-sxm5-80g", gemm);
      EXPECT_EQ(seconds("h800-sxm5-80g", gemm), h100) << m << ' ' << n;
      EXPECT_NEAR(seconds("h200-sxm5-141g", gemm) / h100, 1, 0.06) << m << ' ' << n;
    }
  }
}

// GELU and sums of GH200 are in a table that stands alone. Elsewhere on Hopper norms in steps stand
// for all chains.
TEST_F(Shipped, ATableThatStandsAlonePricesItsOwnDevice) {
  const auto in_steps = [&](const std::string& device, MemoryBoundKind kind) {
    return profile(device).memory.step_factor[static_cast<std::size_t>(kind)];
  };
  EXPECT_NEAR(in_steps("gh200-96g", MemoryBoundKind::kActivation), 1.18, 0.01);
  EXPECT_NEAR(in_steps("gh200-96g", MemoryBoundKind::kDropoutAdd), 0.87, 0.01);
  for (const MemoryBoundKind kind : {MemoryBoundKind::kActivation, MemoryBoundKind::kDropoutAdd}) {
    EXPECT_EQ(in_steps("h100-sxm5-80g", kind), in_steps("h100-sxm5-80g", MemoryBoundKind::kNorm));
  }
}

}  // namespace
}  // namespace stepcast
