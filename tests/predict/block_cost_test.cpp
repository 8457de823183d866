// SPDX-License-Identifier: Apache-2.0
#include "predict/block_cost.h"

#include <gtest/gtest.h>

#include "cost/collective_cost.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Its time counts as a GEMM's, its error as that of what was measured as it stands.
TEST(BlockCost, OfAnExactOperationHasAnErrorOfItsOwn) {
  const Scenario scenario = testing::gpt({});
  const Gemm gemm{GemmRole::kForward, 1, 64, 64, 64, DataType::kBf16, DataType::kBf16, false};
  const Operation operation{"qkv", Phase::kForward, gemm, {}, {}};
  Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
  const CollectiveCosts collectives(scenario.cluster, "");
  const auto cost = [&] {
    const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, true);
    return BlockCosts(scenario, kernels, collectives).price(std::vector<Operation>{operation});
  };
  const auto of = [](const RunCost& run, Curve curve) {
    return run.by_curve[static_cast<std::size_t>(curve)].value();
  };
  EXPECT_GT(of(cost(), Curve::kGemm), 0);
  EXPECT_EQ(of(cost(), Curve::kExact), 0);
  profile.exact["gemm forward 1x64x64x64 bf16 bf16"] = {Seconds(0.5), {}};
  EXPECT_EQ(of(cost(), Curve::kGemm), 0);
  EXPECT_EQ(of(cost(), Curve::kExact), 0.5);
  EXPECT_EQ(cost().gemm.value(), 0.5);
}

}  // namespace
}  // namespace stepcast
