// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_on_gpu.h"

#include <gtest/gtest.h>

#include "calibrate/gpu_kernel_kind.h"
#include "calibrate/import/imported_profile.h"
#include "calibrate/kind_of_operation.h"
#include "calibrate/profile_writer.h"
#include "core/each.h"
#include "cost/collective_cost.h"
#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "places.h"
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
constexpr GroupedGemm kGrouped{GemmRole::kForward, 8,    16384, 4096, 2048, DataType::kBf16,
                               DataType::kBf16,    false};
Attention attention(bool backward) {
  return {backward, 2, 32, 8, 4096, 4096, 128, true, DataType::kBf16};
}

// Calibrates one product, over the profile that the device ships with.
ShippedProfile calibrated(double sustained) {
  MeasuredOperation measured;
  measured.operation.work = kProduct;
  measured.measurement.median_s = kSample_s;
  measured.condition.sm_clock_mhz = 1605;
  const ClusterSpec& spec = h100().spec;
  Imported out = curves_of({measured}, spec.accelerator, "own");
  out.own_run = OwnRun{};
  out.own_run->sustained[GpuKernelKind::kGemm] = sustained;
  auto base = load_profile(spec.accelerator.profile,
                           source_folder() + "/calibrate/profiles");
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

TEST(GpuKernelKinds, AreOfSixteenBitsAndLess) {
  EXPECT_EQ(gpu_kernel_kind(kProduct), GpuKernelKind::kGemm);
  Gemm other = kProduct;
  other.input = DataType::kFp8;
  EXPECT_EQ(gpu_kernel_kind(other), GpuKernelKind::kGemmFp8);
  other.input = DataType::kFp32;
  EXPECT_EQ(gpu_kernel_kind(other), std::nullopt);
  EXPECT_EQ(gpu_kernel_kind(kGrouped), GpuKernelKind::kGroupedGemm);
  EXPECT_EQ(gpu_kernel_kind(attention(true)), GpuKernelKind::kAttentionBackward);
  EXPECT_EQ(gpu_kernel_kind(Normalization{}), GpuKernelKind::kMemoryBound);
  EXPECT_EQ(gpu_kernel_kind(RouterScores{}), GpuKernelKind::kMemoryBound);
}

MeasuredOperation timed(Operation::Work work, double seconds) {
  MeasuredOperation out;
  out.operation.work = std::move(work);
  out.measurement.median_s = seconds;
  return out;
}

ShippedProfile calibrated(const std::vector<MeasuredOperation>& operations,
                          const std::map<GpuKernelKind, double>& sustained) {
  const ClusterSpec& spec = h100().spec;
  Imported out = curves_of(operations, spec.accelerator, "stepcast");
  out.own_run = OwnRun{};
  out.own_run->attention_kernel = "stepcast";
  out.own_run->sustained = sustained;
  auto base = load_profile(spec.accelerator.profile,
                           source_folder() + "/calibrate/profiles");
  return *make_imported_profile(out, spec, std::move(*base), "mine");
}

double price(const ShippedProfile& made, const Operation::Work& work) {
  Operation operation{};
  operation.work = work;
  return KernelCosts(h100().spec.accelerator, made.profile, KernelStyle::kOwn, own_executor(), "")
      .price(operation)
      .time.value();
}

// A product of fp8 costs what it took, at the pace that fp8 had without rest.
TEST(CalibratedFp8, PricesTheProductThatWasMeasured) {
  Gemm narrow = kProduct;
  narrow.input = DataType::kFp8;
  const ShippedProfile made = calibrated(
      {timed(narrow, 130e-6)}, {{GpuKernelKind::kGemmFp8, 1.1}, {GpuKernelKind::kGemm, 1.5}});
  EXPECT_NEAR(price(made, narrow), 1.1 * 130e-6, 1e-3 * 130e-6);
  EXPECT_EQ(made.profile.gemm_fp8.samples.size(), 1U);
}

// Eight products in all roles bend the form of grouped ones; each then costs about what it took.
TEST(CalibratedExperts, PricesTheProductsThatWereMeasured) {
  std::vector<MeasuredOperation> operations;
  const auto base = load_profile(h100().spec.accelerator.profile,
                                 source_folder() + "/calibrate/profiles");
  GroupedFit slow;  // as if the kernels reached 0.6 of dense products' rate, and 3 us for a group
  slow.rate = 0.6;
  slow.role_factor = {1, 1.1, 1.3};
  slow.group_s = 3e-6;
  for (const std::int64_t rows : {8192, 16384, 65536}) {
    for (const GemmRole role :
         {GemmRole::kForward, GemmRole::kInputGradient, GemmRole::kWeightGradient}) {
      GroupedGemm work = kGrouped;
      work.role = role;
      work.rows = rows;
      operations.push_back(timed(
          work, grouped_form_time(slow, base->gemm, h100().spec.accelerator, mean_gemm_of(work))
                    .value()));
    }
  }
  const ShippedProfile made = calibrated(operations, {{GpuKernelKind::kGroupedGemm, 1.2}});
  for (const MeasuredOperation& one : each_of(operations)) {
    EXPECT_NEAR(price(made, one.operation.work) / (1.2 * one.measurement.median_s), 1, 0.03);
  }
  EXPECT_EQ(made.profile.grouped_provenance, Provenance::kInterpolated);
  EXPECT_NE(profile_text(made).find("\"grouped_gemm\""), std::string::npos);
}

// The executor takes the faster kernel of each shape; cuDNN's has a curve of its own, which other
// frameworks read.
TEST(CalibratedAttention, KeepsBothKernelsAndSaysWhichIsFaster) {
  MeasuredOperation forward = timed(attention(false), 200e-6);
  forward.kernel = "cudnn";
  forward.other = OtherKernel{"stepcast-own", {}, {}};
  forward.other->measurement.median_s = 500e-6;
  MeasuredOperation backward = timed(attention(true), 900e-6);
  backward.kernel = "stepcast-own";
  backward.other = OtherKernel{"cudnn", {}, {}};
  backward.other->measurement.median_s = 1000e-6;
  const std::vector<MeasuredOperation> operations = {forward, backward};
  EXPECT_EQ(attention_compared(operations),
            "of 2 shapes faster: cudnn for 1, stepcast-own for 1; in the median in 0.65 of the "
            "other's time");
  EXPECT_EQ(attention_compared({timed(attention(true), 1)}), "");
  const ShippedProfile made = calibrated(
      operations, {{GpuKernelKind::kAttention, 1.1}, {GpuKernelKind::kAttentionBackward, 1.2}});
  EXPECT_NEAR(price(made, attention(false)), 1.1 * 200e-6, 1e-3 * 200e-6);
  EXPECT_NEAR(price(made, attention(true)), 1.2 * 900e-6, 1e-3 * 900e-6);
  EXPECT_EQ(made.profile.attention_kernel[own_executor()], "stepcast");
  const auto priced_by = [&](const std::string& kernel, bool is_backward) {
    Operation operation{};
    operation.work = attention(is_backward);
    return KernelCosts(h100().spec.accelerator, made.profile, KernelStyle::kFused, std::nullopt,
                       kernel)
        .price(operation)
        .time.value();
  };
  EXPECT_NEAR(priced_by("cudnn", true), 1.2 * 1000e-6, 1e-3 * 1000e-6);
  EXPECT_NEAR(priced_by("stepcast-own", false), 1.1 * 500e-6, 1e-3 * 500e-6);
}

}  // namespace
}  // namespace stepcast
