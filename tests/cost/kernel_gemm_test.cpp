// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"

namespace stepcast {
namespace {

// 100 SMs, 100 TFLOP/s, 1 TB/s: one SM multiplies at 1 TFLOP/s.
Accelerator round_device() {
  Accelerator out;
  out.name = "round";
  out.sm_count = 100;
  out.memory_bandwidth = BytesPerSecond(1e12);
  out.dense_peak[DataType::kBf16] = FlopsPerSecond(100e12);
  out.dense_peak[DataType::kFp8] = FlopsPerSecond(200e12);
  return out;
}

Gemm square(std::int64_t n, GemmRole role = GemmRole::kForward) {
  return {role, 1, n, n, n, DataType::kBf16, DataType::kBf16, false};
}

// Whole waves of the largest tile, everything else ideal.
GemmFit ideal_form() {
  GemmFit fit;
  fit.efficiency = 1;
  fit.memory_fraction = 1;
  fit.tile_half = 100;  // smaller tiles lose
  return fit;
}

TEST(GemmForm, CountsTwoFlopsPerMultiplyAddAndEachMatrixOnce) {
  const Gemm gemm{GemmRole::kForward, 3, 4, 5, 6, DataType::kBf16, DataType::kFp32, true};
  EXPECT_DOUBLE_EQ(flops_of(gemm), 2.0 * 3 * 4 * 5 * 6);
  // Operands of 2 bytes; the fp32 result is read and written.
  EXPECT_DOUBLE_EQ(traffic_of(gemm).value(), 3.0 * ((4 * 6 + 6 * 5) * 2 + 4 * 5 * 4 * 2));
}

TEST(GemmForm, OneWaveOfTilesTakesTheTimeOfOneTile) {
  // 10 x 10 tiles of 256 x 128 on 100 SMs: 2*256*128*k / 1 TFLOP/s, k = 65536, far from memory.
  const Gemm gemm{GemmRole::kForward, 1,    2560, 1280, 65536, DataType::kBf16,
                  DataType::kBf16,    false};
  const double expected = 2.0 * 256 * 128 * 65536 / 1e12;
  EXPECT_NEAR(gemm_form_time(ideal_form(), round_device(), gemm).value() / expected, 1, 1e-3);
}

TEST(GemmForm, OneTileMoreThanAWaveCostsAnotherWaveWhenWavesAreWhole) {
  GemmFit fit = ideal_form();
  fit.tile_half = 1e5;  // no smaller tile is worth it
  Gemm gemm{GemmRole::kForward, 1, 2560, 1280, 65536, DataType::kBf16, DataType::kBf16, false};
  const double one = gemm_form_time(fit, round_device(), gemm).value();
  // 105 tiles of 128 x 256 on 100 SMs are two waves, but with k cut in two 210 halves are three
  // half waves, and writing the partial sums takes about a hundredth.
  gemm.m = 2561;
  EXPECT_NEAR(gemm_form_time(fit, round_device(), gemm).value() / one, 1.5, 0.02);
  fit.wave_weight = 0;  // the 105 spread evenly
  EXPECT_NEAR(gemm_form_time(fit, round_device(), gemm).value() / one, 1.05, 0.01);
}

TEST(GemmForm, HalfKCostsAsMuchAsTheLoopOfThatLength) {
  GemmFit fit = ideal_form();
  Gemm gemm{GemmRole::kForward, 1, 25600, 12800, 4096, DataType::kBf16, DataType::kBf16, false};
  const double bare = gemm_form_time(fit, round_device(), gemm).value();
  fit.k_half = 4096;
  EXPECT_NEAR(gemm_form_time(fit, round_device(), gemm).value() / bare, 2, 0.02);
}

TEST(GemmForm, SmallDepthIsBoundByWritingTheResult) {
  // Scores of one head: 2048 x 2048 outputs of depth 16. 2 bytes each at 1 TB/s.
  const Gemm gemm{GemmRole::kForward, 64, 2048, 2048, 16, DataType::kBf16, DataType::kBf16, false};
  const double writes = 64.0 * 2048 * 2048 * 2 / 1e12;
  const double time = gemm_form_time(ideal_form(), round_device(), gemm).value();
  EXPECT_GT(time, writes);
  EXPECT_LT(time, 1.2 * writes);
}

TEST(GemmForm, SplittingKFillsIdleSms) {
  // 4 tiles of 256 x 128 on 100 SMs; k is cut into 16 pieces, so 64 SMs work on a 16th each.
  const Gemm gemm{GemmRole::kWeightGradient, 1,    256, 512, 1 << 20, DataType::kBf16,
                  DataType::kBf16,           false};
  const double unsplit = 2.0 * 256 * 128 * (1 << 20) / 1e12;
  EXPECT_LT(gemm_form_time(ideal_form(), round_device(), gemm).value(), unsplit / 10);
}

TEST(GemmForm, OddRowsArePricedAsUnaligned) {
  GemmFit fit = ideal_form();
  fit.misaligned_factor = 1.25;
  Gemm gemm{GemmRole::kForward, 1, 8192, 50304, 4096, DataType::kBf16, DataType::kBf16, false};
  const double aligned = gemm_form_time(fit, round_device(), gemm).value();
  gemm.n = 50257;  // rows of 2-byte alignment: three halvings of 16 bytes
  EXPECT_NEAR(gemm_form_time(fit, round_device(), gemm).value() / aligned, 1.25 * 1.25 * 1.25,
              0.01);
}

TEST(GemmForm, RoleAndLongRunsMultiplyTheTime) {
  GemmFit fit = ideal_form();
  fit.role_factor = {1, 1, 1.1};
  const double forward = gemm_form_time(fit, round_device(), square(8192)).value();
  const Gemm gradient = square(8192, GemmRole::kWeightGradient);
  EXPECT_NEAR(gemm_form_time(fit, round_device(), gradient).value() / forward, 1.1, 1e-3);
  fit.sustained_factor = 1.5;
  fit.sustained_s = forward;  // half of the factor at this duration
  EXPECT_NEAR(gemm_form_time(fit, round_device(), square(8192)).value() / forward, 1.25, 1e-3);
}

TEST(GemmForm, ProductsOfAStepMeetThePowerLimitWhateverTheirLength) {
  GemmFit fit = ideal_form();
  fit.sustained_factor = 1.2;
  fit.sustained_s = 1e-3;
  const auto slower = [&](const Gemm& gemm, Pace pace) {
    return gemm_form_time(fit, round_device(), gemm, pace).value() /
           gemm_form_time(ideal_form(), round_device(), gemm).value();
  };
  const double small_alone = slower(square(2048), Pace::kShortRun);
  EXPECT_NEAR(slower(square(2048), Pace::kBackToBack), small_alone,
              1e-12);  // nothing else is known
  fit.back_to_back = 1.2;
  EXPECT_NEAR(slower(square(2048), Pace::kShortRun), small_alone, 1e-12);
  EXPECT_NEAR(slower(square(2048), Pace::kBackToBack), 1.2, 1e-3);
  EXPECT_NEAR(slower(square(16384), Pace::kBackToBack), 1.2, 1e-3);
}

TEST(GroupedForm, IsADenseProductOfAsManyGroupsWithItsOwnFactors) {
  const Gemm gemm{GemmRole::kForward, 64,   4096, 4096, 4096, DataType::kBf16,
                  DataType::kBf16,    false};
  Accelerator fast = round_device(), narrow = round_device();
  fast.memory_bandwidth = BytesPerSecond(1e14);
  narrow.memory_bandwidth = BytesPerSecond(1e9);
  const auto slower = [&](const GroupedFit& grouped, const Accelerator& device) {
    return grouped_form_time(grouped, ideal_form(), device, gemm) /
           gemm_form_time(ideal_form(), device, gemm);
  };
  EXPECT_NEAR(slower({1, 1}, fast), 1, 1e-12);
  EXPECT_NEAR(slower({0.5, 1}, fast), 2, 1e-3);
  EXPECT_NEAR(slower({1, 0.5}, fast), 1, 1e-3);
  EXPECT_NEAR(slower({1, 0.5}, narrow), 2, 1e-3);
  EXPECT_NEAR(slower({0.5, 1}, narrow), 1, 1e-3);
}

TEST(GroupedForm, OfNarrowOperandsHasARateOfItsOwnWhereOneIsKnown) {
  Accelerator device = round_device();
  device.memory_bandwidth = BytesPerSecond(1e14);
  const auto slower = [&](DataType input, const GroupedFit& grouped) {
    const Gemm gemm{GemmRole::kForward, 64,   4096, 4096, 4096, input,
                    DataType::kBf16,    false};
    return grouped_form_time(grouped, ideal_form(), device, gemm) /
           gemm_form_time(ideal_form(), device, gemm);
  };
  const GroupedFit known{.rate = 0.5, .rate_fp8 = 0.8, .rate_fp4 = 0.4};
  EXPECT_NEAR(slower(DataType::kBf16, known), 2, 1e-3);
  EXPECT_NEAR(slower(DataType::kFp8, known), 1.25, 1e-3);
  EXPECT_NEAR(slower(DataType::kFp4, known), 2.5, 1e-3);
  EXPECT_NEAR(slower(DataType::kFp8, {.rate = 0.5}), 2, 1e-3);
}

TEST(GemmForm, IsFinitePositiveAndMonotoneOnRandomShapes) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> octaves(0, 15), fraction(0.01, 1);
  for (int trial = 0; trial < 3000; ++trial) {
    GemmFit fit;
    fit.efficiency = fraction(random);
    fit.k_half = 300 * fraction(random);
    fit.tile_half = 100 * fraction(random);
    fit.wave_weight = fraction(random);
    fit.overhead_s = 5e-6 * fraction(random);
    fit.sustained_factor = 1 + fraction(random);
    const auto size = [&] { return static_cast<std::int64_t>(std::exp2(octaves(random))); };
    Gemm gemm{GemmRole::kForward, 1,    size(), size(), size(), DataType::kBf16,
              DataType::kBf16,    false};
    const double time = gemm_form_time(fit, round_device(), gemm).value();
    ASSERT_TRUE(std::isfinite(time));
    ASSERT_GT(time, 0);
    ASSERT_GE(time * (1 + 1e-9), flops_of(gemm) / 100e12);  // never above the peak
    for (std::int64_t* dimension : {&gemm.m, &gemm.n, &gemm.k, &gemm.batch}) {
      const std::int64_t before = *dimension;
      *dimension += 1 + size();
      ASSERT_GE(gemm_form_time(fit, round_device(), gemm).value(), time * (1 - 1e-12));
      *dimension = before;
    }
  }
}

TEST(GemmForm, TakesTheNextPrecisionThatHasAPeak) {
  Accelerator volta = round_device();
  volta.dense_peak = {{DataType::kFp16, FlopsPerSecond(125e12)},
                      {DataType::kFp32, FlopsPerSecond(15e12)}};
  EXPECT_EQ(matrix_peak(volta, DataType::kBf16), FlopsPerSecond(125e12));
  EXPECT_EQ(matrix_peak(volta, DataType::kFp8), FlopsPerSecond(125e12));
  EXPECT_EQ(matrix_peak(volta, DataType::kFp32), FlopsPerSecond(15e12));
  EXPECT_EQ(matrix_peak(volta, DataType::kTf32), FlopsPerSecond(15e12));
  Accelerator ampere = volta;
  ampere.dense_peak[DataType::kTf32] = FlopsPerSecond(156e12);
  EXPECT_EQ(matrix_peak(ampere, DataType::kTf32), FlopsPerSecond(156e12));
  EXPECT_EQ(matrix_peak(ampere, DataType::kFp32), FlopsPerSecond(15e12));
}

// An A100 multiplies eight times as much in TF32 as in fp32, from the same bytes.
TEST(GemmForm, InTf32ReadsTheBytesOfFp32) {
  Accelerator device = round_device();
  device.dense_peak[DataType::kFp32] = FlopsPerSecond(20e12);
  device.dense_peak[DataType::kTf32] = FlopsPerSecond(160e12);
  Gemm gemm{GemmRole::kForward, 1, 8192, 8192, 8192, DataType::kFp32, DataType::kFp32, false};
  const double fp32 = gemm_form_time(ideal_form(), device, gemm).value();
  const Bytes traffic = traffic_of(gemm);
  gemm.input = DataType::kTf32;
  EXPECT_EQ(traffic_of(gemm), traffic);
  EXPECT_NEAR(fp32 / gemm_form_time(ideal_form(), device, gemm).value(), 8, 0.1);
}

Profile profile_with_sample(double efficiency) {
  Profile profile;
  profile.gemm = ideal_form();
  profile.gemm_samples = {{GemmRole::kForward, 1, 4096, 4096, 4096, efficiency}};
  profile.neighbourhood = {0.4, 0.05};
  profile.provenance = Provenance::kInterpolated;
  return profile;
}

TEST(GemmSamples, AMeasuredShapeCostsWhatWasMeasured) {
  const KernelCosts costs(round_device(), profile_with_sample(0.37), KernelStyle::kFused);
  const KernelPrice price = costs.price(square(4096));
  EXPECT_NEAR(flops_of(square(4096)) / price.time.value() / 100e12, 0.37, 1e-12);
  EXPECT_EQ(price.provenance, Provenance::kMeasured);
  EXPECT_EQ(price.curve, Curve::kGemm);
}

TEST(GemmSamples, BendTheFormNearbyAndLeaveItAloneFarAway) {
  const KernelCosts bent(round_device(), profile_with_sample(0.37), KernelStyle::kFused);
  const auto factor = [&](const Gemm& gemm) {
    return bent.price(gemm).time / gemm_form_time(ideal_form(), round_device(), gemm);
  };
  const double here = factor(square(4096));
  Gemm near = square(4096);
  near.m = 4608;  // 0.17 octaves away
  EXPECT_GT(factor(near), 1 + 0.5 * (here - 1));
  EXPECT_LT(factor(near), here);
  EXPECT_DOUBLE_EQ(factor(square(65536)), 1);
  EXPECT_EQ(bent.price(square(65536)).provenance, Provenance::kExtrapolated);
}

TEST(GemmSamples, OfOneRoleSayNothingOfAnother) {
  const KernelCosts costs(round_device(), profile_with_sample(0.37), KernelStyle::kFused);
  const Gemm gradient = square(4096, GemmRole::kInputGradient);
  EXPECT_EQ(costs.price(gradient).time, gemm_form_time(ideal_form(), round_device(), gradient));
}

TEST(GemmSamples, OfForwardBendGradientsWhereTheProfileSaysSo) {
  Profile profile = profile_with_sample(0.37);
  profile.neighbourhood.all_roles = true;
  const KernelCosts costs(round_device(), profile, KernelStyle::kFused);
  Gemm gradient = square(4096, GemmRole::kWeightGradient);
  gradient.output = DataType::kFp32;
  gradient.accumulate = true;
  const KernelPrice forward = costs.price(square(4096)), bent = costs.price(gradient);
  EXPECT_NEAR(bent.time / gemm_form_time(ideal_form(), round_device(), gradient),
              forward.time / gemm_form_time(ideal_form(), round_device(), square(4096)), 1e-12);
  EXPECT_EQ(forward.provenance, Provenance::kMeasured);
  EXPECT_EQ(bent.provenance, Provenance::kInterpolated);
}

TEST(GemmSamples, OfShortRunsGiveAStepTheirShapeAndNotTheirClock) {
  Profile profile = profile_with_sample(0.37);
  const double alone =
      KernelCosts(round_device(), profile, KernelStyle::kFused).price(square(4096)).time.value();
  profile.gemm.back_to_back = 1.3;
  const KernelPrice price =
      KernelCosts(round_device(), profile, KernelStyle::kFused).price(square(4096));
  EXPECT_NEAR(price.time.value() / alone, 1.3, 1e-3);
  EXPECT_EQ(price.provenance, Provenance::kInterpolated);
}

TEST(GemmSamples, InFp8BendProductsInFp8Alone) {
  Profile profile = profile_with_sample(0.37);
  profile.gemm_fp8.fit = ideal_form();
  profile.gemm_fp8.samples = {{GemmRole::kForward, 1, 4096, 4096, 4096, 0.25}};
  const KernelCosts costs(round_device(), profile, KernelStyle::kFused);
  Gemm narrow = square(4096);
  narrow.input = DataType::kFp8;
  const double rate = flops_of(narrow) / costs.price(narrow).time.value();
  EXPECT_NEAR(rate / matrix_peak(round_device(), DataType::kFp8).value(), 0.25, 1e-12);
  EXPECT_NEAR(flops_of(square(4096)) / costs.price(square(4096)).time.value() / 100e12, 0.37,
              1e-12);
}

TEST(GemmSamples, CarriedFromAnotherDeviceAreNotCalledMeasured) {
  Profile profile = profile_with_sample(0.5);
  profile.gemm_samples_provenance = Provenance::kInterpolated;
  const KernelCosts costs(round_device(), profile, KernelStyle::kFused);
  EXPECT_EQ(costs.price(square(4096)).provenance, Provenance::kInterpolated);
  Gemm near = square(4096);
  near.n = 4224;
  EXPECT_EQ(costs.price(near).provenance, Provenance::kExtrapolated);
}

}  // namespace
}  // namespace stepcast
