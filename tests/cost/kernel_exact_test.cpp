// SPDX-License-Identifier: Apache-2.0
// Operations that a profile holds exactly, and GEMMs in fp32.
#include <gtest/gtest.h>

#include <cmath>

#include "cost/gemm_cost.h"
#include "cost/kernel_cost.h"
#include "operation/gradient_work.h"
#include "operation/operation.h"
#include "operation/phase.h"

namespace stepcast {
namespace {

Accelerator core() {
  Accelerator out;
  out.name = "cpu";
  out.architecture = GpuArchitecture::kCpu;
  out.sm_count = 1;
  out.memory_bandwidth = BytesPerSecond(10e9);
  out.dense_peak[DataType::kFp32] = FlopsPerSecond(100e9);
  return out;
}

Gemm square_product(std::int64_t n) {
  return {GemmRole::kForward, 1, n, n, n, DataType::kFp32, DataType::kFp32, false};
}

Operation operation(Operation::Work work) {
  return {"kernel", Phase::kForward, std::move(work), {}, {}};
}

TEST(ExactSamples, GiveTheirMeanAsMeasured) {
  Profile profile = data_sheet_profile(core());
  profile.exact["gemm forward 1x512x512x512 fp32 fp32"] = {Seconds(0.125), {}};
  const Operation fill = operation(ZeroGradients{DataType::kFp32, {1024, 0, 4096}});
  profile.exact["zero_gradients type fp32 elements 1024 width 0 bytes 4096"] = {Seconds(0.25), {}};
  const KernelCosts costs(core(), profile, KernelStyle::kInSteps);
  const KernelPrice gemm = costs.price(operation(square_product(512)));
  EXPECT_EQ(gemm.time.value(), 0.125);
  EXPECT_EQ(gemm.provenance, Provenance::kMeasured);
  EXPECT_EQ(gemm.curve, Curve::kGemm);
  EXPECT_TRUE(gemm.exact);
  EXPECT_EQ(costs.price(fill).time.value(), 0.25);
  EXPECT_EQ(costs.price(fill).provenance, Provenance::kMeasured);
}

TEST(ExactSamples, LeaveOtherOperationsToTheForms) {
  Profile profile = data_sheet_profile(core());
  const KernelCosts bare(core(), profile, KernelStyle::kInSteps);
  profile.exact["gemm forward 1x512x512x512 fp32 fp32"] = {Seconds(0.125), {}};
  const KernelCosts costs(core(), profile, KernelStyle::kInSteps);
  const KernelPrice gemm = costs.price(operation(square_product(513)));
  EXPECT_EQ(gemm.time, bare.price(square_product(513)).time);
  EXPECT_EQ(gemm.provenance, Provenance::kDataSheet);
  EXPECT_FALSE(gemm.exact);
}

// 2 * 256^3 operations at half of the peak of 100 GFLOP/s.
TEST(GemmFp32, SamplesBendItsOwnSurfaceAndNoOther) {
  Profile profile = data_sheet_profile(core());
  GemmCurve curve;
  curve.fit = profile.gemm;
  curve.fit.efficiency = 0.9;
  curve.provenance = Provenance::kInterpolated;
  curve.samples.push_back({GemmRole::kForward, 1, 256, 256, 256, 0.5, 4, false});
  const double wide_before = KernelCosts(core(), profile, KernelStyle::kInSteps)
                                 .price(Gemm{GemmRole::kForward, 1, 256, 256, 256, DataType::kBf16,
                                             DataType::kBf16, false})
                                 .time.value();
  profile.gemm_fp32 = curve;
  const KernelCosts costs(core(), profile, KernelStyle::kInSteps);
  const KernelPrice hit = costs.price(square_product(256));
  EXPECT_NEAR(hit.time.value(), 2.0 * 256 * 256 * 256 / (0.5 * 100e9), 1e-12);
  EXPECT_EQ(hit.provenance, Provenance::kMeasured);
  // Far from the sample the form alone is left.
  const KernelPrice far = costs.price(square_product(16384));
  EXPECT_NEAR(far.time / gemm_form_time(curve.fit, core(), square_product(16384)), 1, 1e-9);
  EXPECT_EQ(far.provenance, Provenance::kExtrapolated);
  EXPECT_EQ(costs
                .price(Gemm{GemmRole::kForward, 1, 256, 256, 256, DataType::kBf16, DataType::kBf16,
                            false})
                .time.value(),
            wide_before);
}

}  // namespace
}  // namespace stepcast
