// SPDX-License-Identifier: Apache-2.0
#include "predict/host_calls.h"

#include <gtest/gtest.h>

#include <array>

#include "core/each.h"
#include "expert_scenarios.h"
#include "layout/framework.h"
#include "operation/collective.h"
#include "operation/expert_parts.h"
#include "operation/gradient_work.h"
#include "operation/operation.h"
#include "operation/phase.h"

namespace stepcast {
namespace {

using testing::ExpertCase;
using testing::with_experts;

Operation grouped(std::int64_t experts, DataType input) {
  return {"experts_up",
          Phase::kForward,
          GroupedGemm{GemmRole::kForward, experts, 64 * experts, 256, 128, input, DataType::kBf16,
                      false},
          {},
          {}};
}

Operation cast(std::int64_t groups, CastSubject subject) {
  Operation out{"cast",
                Phase::kForward,
                Cast{subject, false, DataType::kBf16, DataType::kFp8, {1024, 0, 3072}},
                {},
                {}};
  out.groups = groups;
  return out;
}

Operation scores() {
  return {"router_scores",
          Phase::kForward,
          RouterScores{false, 4, DataType::kFp32, {1024, 16, 9216}},
          {},
          {}};
}

Scenario in(const std::string& more_training, const std::string& more_layout = "") {
  ExpertCase c;
  c.ep = 8;
  c.cluster = "dgx-b200";
  c.more_training = more_training;
  c.more_layout = more_layout;
  return with_experts(c);
}

// Three calls for each expert in 16 bits: its rows, its result, its product. Scales of blocks are
// brought into order for both operands. In fp8 two more look up the copy of its weight.
TEST(HostCalls, OfAGroupedProductAreThoseOfEachExpert) {
  const Scenario plain = in(""), blocks = in(R"(,"precision":"fp8","fp8_recipe":"mxfp8")");
  for (const std::int64_t experts : each_of(std::array<std::int64_t, 3>{1, 2, 16})) {
    EXPECT_EQ(calls_beside(grouped(experts, DataType::kBf16), plain).calls, 3 * experts);
    EXPECT_EQ(calls_beside(grouped(experts, DataType::kFp8), blocks).calls, 7 * experts);
  }
  const Scenario whole = in(R"(,"precision":"fp8","fp8_recipe":"current")");
  EXPECT_EQ(calls_beside(grouped(4, DataType::kFp8), whole).calls, 20);
}

// Backward no copies of weights are looked up, and each expert's gradient is handed over.
TEST(HostCalls, OfWeightGradientsAreOperatorsOfEachExpert) {
  const Scenario blocks = in(R"(,"precision":"fp8","fp8_recipe":"mxfp8")");
  Operation product = grouped(16, DataType::kFp8);
  std::get<GroupedGemm>(product.work).role = GemmRole::kWeightGradient;
  EXPECT_EQ(calls_beside(product, blocks).calls, 16 * 5);
  EXPECT_EQ(calls_beside(product, blocks).operators, 16);
  EXPECT_EQ(calls_beside(grouped(16, DataType::kFp8), blocks).operators, 0);
}

TEST(HostCalls, OfADenseProductAreThoseOfScalesForward) {
  const Scenario s = in(R"(,"precision":"fp8","fp8_recipe":"current")");
  const auto dense = [](GemmRole role, DataType input) {
    const Gemm product{role, 1, 64, 64, 64, input, DataType::kBf16, false};
    return Operation{"qkv", Phase::kForward, product, {}, {}};
  };
  EXPECT_EQ(calls_beside(dense(GemmRole::kForward, DataType::kFp8), s).operators, 8);
  EXPECT_EQ(calls_beside(dense(GemmRole::kInputGradient, DataType::kFp8), s).operators, 0);
  EXPECT_EQ(calls_beside(dense(GemmRole::kWeightGradient, DataType::kFp8), s).operators, 0);
  EXPECT_EQ(calls_beside(dense(GemmRole::kForward, DataType::kBf16), s).operators, 0);
}

TEST(HostCalls, OfACastAreThoseOfEachExpertAndOfDenseRowsNone) {
  const Scenario s = in(R"(,"precision":"fp8","fp8_recipe":"current")");
  EXPECT_EQ(calls_beside(cast(16, CastSubject::kOperand), s).calls, 16 * 4);
  EXPECT_EQ(calls_beside(cast(16, CastSubject::kScale), s).calls, 16 * 4);
  EXPECT_EQ(calls_beside(cast(1, CastSubject::kOperand), s).calls, 0);
}

// A fused router leaves nine of 21 operators, a fused permutation four of eight.
TEST(HostCalls, FollowTheRelease) {
  const TokenPermutation moved{TokenMove::kPermute, false, DataType::kBf16, {1024, 16, 4096}};
  const Operation permute{"permute", Phase::kForward, moved, {}, {}};
  const Scenario before = in(R"(,"release":"2025-01")"), after = in(R"(,"release":"2025-08")");
  EXPECT_EQ(calls_beside(scores(), before).operators, 21);
  EXPECT_EQ(calls_beside(scores(), after).operators, 9);
  EXPECT_EQ(calls_beside(permute, before).operators, 8);
  EXPECT_EQ(calls_beside(permute, after).operators, 4);
}

TEST(HostCalls, AnExchangeBesideAnotherMicroBatchTakesMoreOfTheHost) {
  Collective exchange{};
  exchange.purpose = CollectivePurpose::kDispatch;
  const Operation dispatch{"dispatch", Phase::kForward, exchange, {}, {}};
  EXPECT_EQ(calls_beside(dispatch, in("")).operators, 0);
  EXPECT_EQ(calls_beside(dispatch, in("", R"(,"overlap":{"ep":true})")).operators, 40);
  exchange.purpose = CollectivePurpose::kRouting;
  const Operation counts{"counts", Phase::kForward, exchange, {}, {}};
  EXPECT_EQ(calls_beside(counts, in("", R"(,"overlap":{"ep":true})")).operators, 0);
}

TEST(HostCalls, TakeTheirTimes) {
  HostFit host;
  host.operator_s = 10e-6;
  host.call_s = 4e-6;
  EXPECT_NEAR((HostCalls{3, 5}.time(host).value()), 50e-6, 1e-12);
}

}  // namespace
}  // namespace stepcast
