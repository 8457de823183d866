// SPDX-License-Identifier: Apache-2.0
// The shipped profiles are what the fitter writes of the published tables, and price what it did
// not see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "calibrate/fit/fit_attention.h"
#include "calibrate/fit/fit_gemm.h"
#include "calibrate/fit/fit_grouped.h"
#include "calibrate/fit/shipped.h"
#include "calibrate/profile_writer.h"
#include "calibrate/published_tables.h"
#include "core/each.h"
#include "core/statistics.h"
#include "cost/attention_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "operation/attention_parts.h"
#include "places.h"

namespace stepcast {
namespace {

using testing::accelerator;
using testing::published;

const std::string kRoot = source_folder();
// Median error of models that were held out. Blackwell's engines choose among more kernels, and the
// H200's have some that beat its dense products, which no rate may.
constexpr double kGroupedOnHopper = 0.12, kGroupedOnBlackwell = 0.16;

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
  EXPECT_EQ(curves, 5);
}

// Every second shape of a table, in the order of its rows, which stand in groups of one shape.
template <class Row>
std::vector<Row> half(const std::vector<Row>& rows, std::size_t rows_of_shape, bool second) {
  std::vector<Row> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if ((i / rows_of_shape % 2 == 1) == second) out.push_back(rows[i]);
  }
  return out;
}

TEST_F(Shipped, ProductsOfHalfOfAmdsShapesTellTheOthers) {
  const Accelerator device = accelerator("mi300x-192g");
  const auto table = std::ranges::find_if(published().gemm, [](const GemmTable& one) {
    return one.device == "mi300x-192g" && one.precision == DataType::kBf16;
  });
  ASSERT_NE(table, published().gemm.end());
  const std::vector<GemmSample> samples = in_fractions(*table, device).samples;
  const GemmFit start = profile("a100-pcie-80g").gemm;
  const GemmFit fit = fit_gemm(device, half(samples, 3, false), start).fit;
  std::vector<double> errors;
  for (const GemmSample& one : half(samples, 3, true)) {
    const Gemm gemm = gemm_of(one, DataType::kBf16);
    const double measured =
        flops_of(gemm) / (device.peak(DataType::kBf16)->value() * one.efficiency);
    errors.push_back(std::abs(gemm_form_time(fit, device, gemm).value() / measured - 1));
  }
  EXPECT_GT(errors.size(), 90u);
  EXPECT_LT(median(errors), 0.06);
}

TEST_F(Shipped, AttentionOfHalfOfAmdsShapesTellsTheOthers) {
  const Accelerator device = accelerator("mi300x-192g");
  const auto table = std::ranges::find_if(
      published().attention, [](const AttentionTable& one) { return one.device == "mi300x-192g"; });
  ASSERT_NE(table, published().attention.end());
  const auto points = attention_measurements(*table, device, 1);
  const AttentionFit start = profile("a100-pcie-80g").attention;
  const AttentionFit fit = fit_attention(device, half(points, 2, false), start).fit;
  std::vector<double> errors;
  for (const AttentionMeasurement& one : half(points, 2, true)) {
    const AttentionSample& s = one.sample;
    const Attention work{s.backward, s.batch,    s.heads,  s.kv_heads,     s.sequence,
                         s.sequence, s.head_dim, s.causal, DataType::kBf16};
    errors.push_back(std::abs(attention_form_time(fit, device, work).value() / one.seconds - 1));
  }
  EXPECT_GT(errors.size(), 50u);
  EXPECT_LT(median(errors), 0.06);
}

TEST_F(Shipped, KernelsOfAmdThatNoFitSawCostWhatWasMeasured) {
  int curves = 0;
  for (const ShippedProfile& shipped : each_of(profiles())) {
    if (shipped.profile.name != "mi300x-192g") continue;
    for (const CurveNote& note : shipped.notes) {
      if (note.held_out.median == 0) continue;
      EXPECT_LT(note.held_out.median, 0.06) << note.operation;
      ++curves;
    }
  }
  EXPECT_EQ(curves, 5);  // bf16, fp8, grouped, attention by two kernels
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
