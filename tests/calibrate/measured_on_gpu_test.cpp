// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_on_gpu.h"

#include <gtest/gtest.h>

#include "calibrate/import/imported_profile.h"
#include "calibrate/profile_writer.h"
#include "cost/collective_cost.h"
#include "cost/kernel_cost.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

const Cluster& h100() {
  static const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100",
          "training": {"global_batch": 8}})");
  return scenario.cluster;
}

// The loss that the forecast would have taken by itself is one SM for a channel.
TEST(SmsPerChannel, IsOneWhereKernelsLoseTheChannelsAlone) {
  const ClusterSpec& spec = h100().spec;
  const CollectiveCosts costs(h100(), "");
  for (const int ranks : {2, 4, 8}) {
    std::vector<DeviceId> members;
    for (int i = 0; i < ranks; ++i) members.emplace_back(i);
    const auto channels = static_cast<double>(
        costs.price(CollectiveKind::kAllReduce, 64 << 20, DataType::kBf16, members).channels);
    const auto sms = static_cast<double>(spec.accelerator.sm_count);
    const double slowdown = sms / (sms - channels);
    EXPECT_NEAR(*sms_per_channel(slowdown, ranks, 64 << 20, spec), 1, 1e-12) << ranks;
    // And twice as much where twice as many are lost.
    EXPECT_NEAR(*sms_per_channel(sms / (sms - 2 * channels), ranks, 64 << 20, spec), 2, 1e-12);
    EXPECT_EQ(*sms_per_channel(1, ranks, 64 << 20, spec), 0);
  }
}

TEST(SmsPerChannel, IsOfGroupsInsideANode) {
  EXPECT_EQ(sms_per_channel(1.2, 1, 1 << 20, h100().spec), std::nullopt);
  EXPECT_EQ(sms_per_channel(1.2, 16, 1 << 20, h100().spec), std::nullopt);
}

TEST(MeasuredCollectives, BecomeTablesOfTheirGroups) {
  MeasuredCollective measured;
  measured.kind = CollectiveKind::kAllGather;
  measured.placement = {0, 0, 1, 1};
  for (const ByteCount bytes : {1024, 4096}) {
    Measurement time;
    time.median_s = 1e-6 * static_cast<double>(bytes);
    time.n = 5;
    measured.points.push_back({bytes, time});
  }
  MeasuredCollective single = measured;
  single.points.pop_back();
  Imported out;
  add_collectives({measured, single}, out);
  ASSERT_EQ(out.collectives.size(), 1U);  // one size is no curve
  EXPECT_EQ(out.collectives[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(out.collectives[0].ranks, 4);
  EXPECT_EQ(out.collectives[0].nodes, 2);
  EXPECT_EQ(out.collectives[0].launch, Launch::kOwn);
  EXPECT_DOUBLE_EQ(out.collectives[0].samples[1].time.value(), 4.096e-3);
}

constexpr Gemm kProduct{GemmRole::kForward, 1,    4096, 4096, 4096, DataType::kBf16,
                        DataType::kBf16,    false};
constexpr double kSample_s = 220e-6;

// Calibrates one product, over the profile that the device ships with.
ShippedProfile calibrated(double sustained) {
  MeasuredOperation measured;
  measured.operation.work = kProduct;
  measured.measurement.median_s = kSample_s;
  measured.condition.sm_clock_mhz = 1605;
  const ClusterSpec& spec = h100().spec;
  Imported out = curves_of({measured}, spec.accelerator, "own");
  out.own_run = OwnRun{};
  out.own_run->sustained[Curve::kGemm] = sustained;
  auto base = load_profile(spec.accelerator.profile,
                           std::string(STEPCAST_SOURCE_DIR) + "/calibrate/profiles");
  return *make_imported_profile(out, spec, std::move(*base), "mine");
}

// The shipped profile holds short runs, which it stretches. What is measured here needs the factor
// that was measured here, and no other.
TEST(SustainedKernels, TakeTheFactorThatWasMeasured) {
  for (const double factor : {1.0, 1.2}) {
    const KernelCosts costs(h100().spec.accelerator, calibrated(factor).profile,
                            KernelStyle::kFused);
    EXPECT_NEAR(costs.price(kProduct).time.value(), factor * kSample_s, 1e-3 * kSample_s);
  }
}

TEST(SustainedKernels, SamplesSayTheirClock) {
  const ShippedProfile made = calibrated(1);
  ASSERT_EQ(made.profile.gemm_samples.size(), 1U);
  EXPECT_EQ(made.profile.gemm_samples[0].sm_clock_mhz, 1605);
  EXPECT_NE(profile_text(made).find("\"sm_clock_mhz\""), std::string::npos);
}

TEST(GpuCurves, AreOfSixteenBits) {
  EXPECT_EQ(gpu_curve_of(kProduct), Curve::kGemm);
  Gemm wide = kProduct;
  wide.input = DataType::kFp32;
  EXPECT_EQ(gpu_curve_of(wide), std::nullopt);
  EXPECT_EQ(gpu_curve_of(Normalization{}), Curve::kMemoryBound);
}

}  // namespace
}  // namespace stepcast
