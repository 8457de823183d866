// SPDX-License-Identifier: Apache-2.0
#include "operation/signature.h"

#include <gtest/gtest.h>

#include <set>

namespace stepcast {
namespace {

Operation of(const char* name, std::variant<Gemm, Attention, Elementwise, Collective> work,
             Phase phase = Phase::kForward) {
  return {name, phase, std::move(work), {}, {}};
}

TEST(Signature, IsOneLinePerKind) {
  EXPECT_EQ(signature(of("qkv", Gemm{GemmRole::kForward, 1, 512, 1024, 256, DataType::kFp32,
                                     DataType::kFp32, false})),
            "gemm forward 1x512x1024x256 fp32 fp32");
  EXPECT_EQ(
      signature(of("attention", Attention{true, 2, 16, 4, 512, 256, 64, true, DataType::kFp32})),
      "attention backward 2x16x4x512x256x64 causal fp32");
  EXPECT_EQ(signature(of("mlp_act",
                         Elementwise{ElementwiseKind::kActivation, true, 65536, 64, 524288, 3})),
            "elementwise mlp_act activation backward 65536 width 64 bytes 524288");
  EXPECT_EQ(signature(of("all_reduce", Collective{CollectiveKind::kAllReduce, AxisGroup::kTensor,
                                                  4096, DataType::kFp32, false})),
            "collective all_reduce 4096 fp32");
}

// A recomputed forward does the work of the first one.
TEST(Signature, LeavesOutThePhase) {
  const Gemm gemm{GemmRole::kForward, 1, 8, 8, 8, DataType::kFp32, DataType::kFp32, false};
  EXPECT_EQ(signature(of("qkv", gemm, Phase::kForward)),
            signature(of("proj", gemm, Phase::kRecompute)));
}

TEST(Signature, TellsEveryFieldOfAGemmApart) {
  const Gemm base{GemmRole::kForward, 1, 2, 3, 4, DataType::kFp32, DataType::kFp32, false};
  std::vector<Gemm> others(8, base);
  others[0].role = GemmRole::kWeightGradient;
  others[1].batch = 5;
  others[2].m = 5;
  others[3].n = 5;
  others[4].k = 5;
  others[5].input = DataType::kBf16;
  others[6].output = DataType::kBf16;
  others[7].accumulate = true;
  std::set<std::string> seen{signature(of("g", base))};
  for (const Gemm& other : others) EXPECT_TRUE(seen.insert(signature(of("g", other))).second);
}

}  // namespace
}  // namespace stepcast
