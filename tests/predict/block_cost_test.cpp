// SPDX-License-Identifier: Apache-2.0
#include "predict/block_cost.h"

#include <gtest/gtest.h>

#include <memory>

#include "cost/collective_cost.h"
#include "program/instruction.h"
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
    const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
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

// One tensor of the list after the other; the norm of gradients has no list.
TEST(BlockCost, GathersIntoListsAreCopiedRankByRank) {
  testing::GptCase c;
  c.framework = "deepspeed";
  c.zero = 3;
  c.dp = 8;
  const auto launch = [&](Purpose purpose) {
    const Scenario scenario = testing::gpt(c);
    Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
    profile.host[scenario.training.framework].copy_s = 1;
    const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
    const CollectiveCosts collectives(scenario.cluster, "");
    const CollectiveCall call{
        purpose, AxisGroup::kData, {CollectiveKind::kAllGather, 4096, DataType::kBf16}};
    const BlockCosts costs(scenario, kernels, collectives);
    return (costs.launch_collective(call) - costs.launch_collective()).value();
  };
  EXPECT_EQ(launch(Purpose::kParameters), 0);
  c.extra_training = R"(, "release": "2021-04")";
  EXPECT_DOUBLE_EQ(launch(Purpose::kParameters), 8);
  EXPECT_DOUBLE_EQ(launch(Purpose::kGradients), 8);
  EXPECT_EQ(launch(Purpose::kGradientNorm), 0);
}

// 64 products that vary, then two collectives: the first begins when the later of two ranks has
// come, the second at once. Waiting counts for the axis of the group.
TEST(BlockCost, CollectivesWaitForTheLastRankToCome) {
  testing::GptCase c;
  c.tp = 2;
  const Scenario scenario = testing::gpt(c);
  const Gemm gemm{GemmRole::kForward, 1, 64, 64, 64, DataType::kBf16, DataType::kBf16, false};
  const CollectiveCosts collectives(scenario.cluster, "");
  for (const AxisGroup group : {AxisGroup::kTensor, AxisGroup::kContext, AxisGroup::kExpert}) {
    const Collective sum{CollectiveKind::kAllReduce, group, 4096, DataType::kBf16};
    std::vector<Operation> operations(64, {"qkv", Phase::kForward, gemm, {}, {}});
    operations.push_back({"first", Phase::kForward, sum, {}, {}});
    operations.push_back({"second", Phase::kForward, sum, {}, {}});
    const auto price = [&](const Jitter& jitter, std::vector<DeviceId> members) {
      Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
      profile.exact["gemm forward 1x64x64x64 bf16 bf16"] = {Seconds(1e-3), jitter};
      const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
      BlockCosts costs(scenario, kernels, collectives);
      costs.use_groups({{group, std::move(members)}});
      std::vector<double> out;
      for (PricedOperation& priced : costs.price_each(operations)) {
        out.push_back(priced.cost.communication(group).value());
      }
      return out;
    };
    const Jitter jitter{1e-8, Seconds(), 0};  // 0.1 ms each
    const auto even = price({}, {DeviceId(0), DeviceId(1)});
    const auto uneven = price(jitter, {DeviceId(0), DeviceId(1)});
    EXPECT_NEAR(uneven[64] - even[64], 0.5642 * 0.1e-3 * 8, 1e-9) << name_of(group);
    EXPECT_EQ(uneven[65], even[65]);
    EXPECT_EQ(price(jitter, {DeviceId(0)})[64], 0);
  }
}

// Two GPUs of one node and two of different nodes: each message takes what its own group makes it
// cost, and nothing in a group that has no place.
TEST(BlockCost, ACollectiveIsPricedInTheGroupThatItNames) {
  testing::GptCase c;
  c.dp = 16;
  c.global_batch = 16;
  const Scenario scenario = testing::gpt(c);
  const CollectiveCosts collectives(scenario.cluster, "");
  const Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
  const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
  BlockCosts costs(scenario, kernels, collectives);
  const std::vector<DeviceId> near = {DeviceId(0), DeviceId(1)}, far = {DeviceId(0), DeviceId(8)};
  const auto alone = [&](const std::vector<DeviceId>& group) {
    return collectives.price(CollectiveKind::kAllReduce, 64 << 20, DataType::kBf16, group);
  };
  const CollectivePrice shared = alone(far);
  // A sibling on the one link that the group fills.
  SiblingLinks links{{shared.rate_bound.value()}, {}};
  const Way way = way_of({CollectiveKind::kAllReduce, 64 << 20, DataType::kBf16}, shared);
  links.uses[{AxisGroup::kContext, way}] = {{{0, 1.0}}, {{0, 1.0}}};
  costs.use_groups({{AxisGroup::kTensor, near}, {AxisGroup::kContext, far}},
                   std::make_shared<const SiblingLinks>(links));
  const auto price = [&](AxisGroup group) {
    const Collective sum{CollectiveKind::kAllReduce, group, 64 << 20, DataType::kBf16};
    return costs.price({{"sum", Phase::kForward, sum, {}, {}}}).gpu.value();
  };
  EXPECT_EQ(price(AxisGroup::kTensor), alone(near).time().value());
  EXPECT_NEAR(price(AxisGroup::kContext),
              (shared.latency + shared.work / shared.rate_bound * 2.0).value(), 2e-12);
  EXPECT_GT(price(AxisGroup::kContext), 2 * price(AxisGroup::kTensor));
  EXPECT_EQ(price(AxisGroup::kExpert), 0);
}

// A gathered product in two pieces: the first runs beside the transfer of the second. What both
// take together is no less than the longer of them, and no more than one after the other.
TEST(BlockCost, APipelinedProductPaysForItsPieces) {
  testing::GptCase c;
  c.tp = 2;
  const Scenario scenario = testing::gpt(c);
  const CollectiveCosts collectives(scenario.cluster, "");
  const Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
  const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
  BlockCosts costs(scenario, kernels, collectives);
  costs.use_groups({{AxisGroup::kTensor, {DeviceId(0), DeviceId(1)}}});
  const Gemm product{GemmRole::kForward, 1,    8192, 8192, 4096, DataType::kBf16,
                     DataType::kBf16,    false};
  Collective gather{CollectiveKind::kAllGather, AxisGroup::kTensor, 2 * 8192 * 4096,
                    DataType::kBf16};
  const auto price = [&](bool overlapped) {
    gather.overlapped = overlapped;
    return costs.price_each({{"gather", Phase::kForward, gather, {}, {}},
                             {"product", Phase::kForward, product, {}, {}}});
  };
  const std::vector<PricedOperation> plain = price(false), split = price(true);
  Gemm half = product;
  half.m /= 2;
  const Seconds piece = kernels.price(Operation{"half", Phase::kForward, half, {}, {}}).time;
  EXPECT_EQ(split[1].cost.gpu.value(), (piece * 2.0).value());
  EXPECT_GT(split[1].cost.gpu, plain[1].cost.gpu);
  const Seconds both = split[0].cost.gpu + split[1].cost.gpu;
  EXPECT_LT(both, plain[0].cost.gpu + plain[1].cost.gpu);
  EXPECT_GE(both, std::max(plain[0].cost.gpu, plain[1].cost.gpu));
}

// The host meets the end of every kernel, so its time and the kernels' add up.
TEST(BlockCost, BlockingLaunchesAddHostAndKernels) {
  Scenario scenario = testing::gpt({});
  const Gemm gemm{GemmRole::kForward, 1, 512, 512, 512, DataType::kBf16, DataType::kBf16, false};
  const std::vector<Operation> operations(8, {"qkv", Phase::kForward, gemm, {}, {}});
  const CollectiveCosts collectives(scenario.cluster, "");
  const Profile profile = data_sheet_profile(scenario.cluster.spec.accelerator);
  const KernelCosts kernels(scenario.cluster.spec.accelerator, profile, KernelStyle::kFused);
  const auto price = [&] { return BlockCosts(scenario, kernels, collectives).price(operations); };
  const RunCost queued = price();
  scenario.training.launch_blocking = true;
  const RunCost blocked = price();
  EXPECT_EQ(blocked.gpu, queued.gpu);
  EXPECT_GT(blocked.floor, queued.host + queued.gpu);
  EXPECT_GE(blocked.host, blocked.floor);
}

}  // namespace
}  // namespace stepcast
