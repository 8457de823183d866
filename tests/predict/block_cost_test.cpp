// SPDX-License-Identifier: Apache-2.0
#include "predict/block_cost.h"

#include <gtest/gtest.h>

#include "cost/collective_cost.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Its time counts as a GEMM's; its error is that of operations that were measured as they stand.
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

// 64 products that vary, then two collectives: the first begins when the later of two ranks has
// come, the second at once.
TEST(BlockCost, CollectivesWaitForTheLastRankToCome) {
  testing::GptCase c;
  c.tp = 2;
  const Scenario scenario = testing::gpt(c);
  const Gemm gemm{GemmRole::kForward, 1, 64, 64, 64, DataType::kBf16, DataType::kBf16, false};
  const Collective sum{CollectiveKind::kAllReduce, GroupKind::kTensor, 4096, DataType::kBf16};
  std::vector<Operation> operations(64, {"qkv", Phase::kForward, gemm, {}, {}});
  operations.push_back({"first", Phase::kForward, sum, {}, {}});
  operations.push_back({"second", Phase::kForward, sum, {}, {}});
  const CollectiveCosts collectives(scenario.cluster, "");
  const auto price = [&](const Jitter& jitter, std::vector<DeviceId> group) {
    Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
    profile.exact["gemm forward 1x64x64x64 bf16 bf16"] = {Seconds(1e-3), jitter};
    const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, true);
    BlockCosts costs(scenario, kernels, collectives);
    costs.use_tensor_group(std::move(group), 1);
    std::vector<double> out;
    for (const PricedOperation& priced : costs.price_each(operations)) {
      out.push_back(priced.cost.tensor_parallel.value());
    }
    return out;
  };
  const Jitter jitter{1e-8, Seconds(), 0};  // 0.1 ms each
  const auto even = price({}, {DeviceId(0), DeviceId(1)});
  const auto uneven = price(jitter, {DeviceId(0), DeviceId(1)});
  EXPECT_NEAR(uneven[64] - even[64], 0.5642 * 0.1e-3 * 8, 1e-9);
  EXPECT_EQ(uneven[65], even[65]);
  EXPECT_EQ(price(jitter, {DeviceId(0)})[64], 0);
}

}  // namespace
}  // namespace stepcast
