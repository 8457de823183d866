// SPDX-License-Identifier: Apache-2.0
#include "operation/signature.h"

#include <gtest/gtest.h>

#include <set>

#include "core/data_type.h"
#include "layout/axis_group.h"
#include "model/model.h"
#include "operation/attention_parts.h"
#include "operation/collective_kind.h"
#include "operation/gradient_work.h"
#include "operation/layer_parts.h"
#include "operation/memory_bound.h"
#include "operation/operation.h"
#include "operation/phase.h"
#include "operation/product.h"

namespace stepcast {
namespace {

Operation of(const char* name, Operation::Work work, Phase phase = Phase::kForward) {
  return {name, phase, std::move(work), {}, {}};
}

TEST(Signature, IsOneLinePerKind) {
  EXPECT_EQ(signature(of("qkv", Gemm{GemmRole::kForward, 1, 512, 1024, 256, DataType::kFp32,
                                     DataType::kFp32, false})),
            "gemm forward 1x512x1024x256 fp32 fp32");
  EXPECT_EQ(
      signature(of("attention", Attention{true, 2, 16, 4, 512, 256, 64, true, DataType::kFp32})),
      "attention backward 2x16x4x512x256x64 causal fp32");
  EXPECT_EQ(
      signature(
          of("mlp_act",
             Activation{Mlp::kGelu, true, false, false, DataType::kBf16, {65536, 64, 524288, 3}})),
      "activation gelu backward type bf16 elements 65536 width 64 bytes 524288");
  EXPECT_EQ(
      signature(
          of("scores",
             AttentionProduct{AttentionProductKind::kScores, {2, 8, 4, 128, 64}, DataType::kFp16})),
      "attention_product scores batch 2 heads 8 kv_heads 4 sequence 128 head_dim 64 type fp16");
  EXPECT_EQ(signature(of("all_reduce", Collective{CollectiveKind::kAllReduce, AxisGroup::kTensor,
                                                  4096, DataType::kFp32, false})),
            "collective all_reduce tp bytes 4096 type fp32 activations");
}

// Kernels of one kind and size that compute different things.
TEST(Signature, TellsMeaningsOfOneSizeApart) {
  const KernelSize size{4096, 64, 16384};
  const DataType type = DataType::kBf16;
  const std::vector<Operation::Work> works = {
      Normalization{Norm::kLayerNorm, false, true, false, false, type, type, size},
      Normalization{Norm::kRmsNorm, false, true, false, false, type, type, size},
      Normalization{Norm::kLayerNorm, false, false, false, false, type, type, size},
      Normalization{Norm::kLayerNorm, false, true, false, false, DataType::kFp32, type, size},
      QueryKeyNorm{false, 32, 32, 16, 16, type, type, size},
      Activation{Mlp::kGelu, false, false, false, type, size},
      Activation{Mlp::kSwiglu, false, false, false, type, size},
      Activation{Mlp::kSwiglu, false, true, false, type, size},
      Activation{Mlp::kGelu, true, true, false, type, size},
      Activation{Mlp::kGelu, true, true, true, type, size},
      Normalization{Norm::kLayerNorm, false, true, true, false, type, type, size},
      Normalization{Norm::kLayerNorm, false, true, true, true, type, type, size},
      ResidualAdd{false, false, false, type, size},
      ResidualAdd{true, false, false, type, size},
      Dropout{false, type, size},
      AdapterAdd{false, type, size},
      Cast{CastSubject::kLogits, false, type, DataType::kFp32, size},
      Cast{CastSubject::kGradients, false, type, DataType::kFp32, size},
      ClipGradients{type, size},
      OptimizerUpdate{type, false, false, size},
      OptimizerUpdate{type, true, false, size},
      OptimizerUpdate{type, false, true, size},
      Rotary{false, 64, 2, 2, 16, type, size},
      Rotary{false, 32, 2, 2, 16, type, size}};
  std::set<std::string> seen;
  for (const Operation::Work& work : works) {
    EXPECT_TRUE(seen.insert(signature(of("kernel", work))).second) << signature(of("kernel", work));
  }
}

// A recomputed forward does the work of the first one.
TEST(Signature, LeavesOutThePhase) {
  const Gemm gemm{GemmRole::kForward, 1, 8, 8, 8, DataType::kFp32, DataType::kFp32, false};
  EXPECT_EQ(signature(of("qkv", gemm, Phase::kForward)),
            signature(of("proj", gemm, Phase::kRecompute)));
}

TEST(Signature, TellsEveryFieldOfAGemmApart) {
  const Gemm base{GemmRole::kForward, 1, 2, 3, 4, DataType::kFp32, DataType::kFp32, false};
  std::vector<Gemm> others(9, base);
  others[0].role = GemmRole::kWeightGradient;
  others[1].batch = 5;
  others[2].m = 5;
  others[3].n = 5;
  others[4].k = 5;
  others[5].input = DataType::kBf16;
  others[6].output = DataType::kBf16;
  others[7].accumulate = true;
  others[8].bias = true;
  std::set<std::string> seen{signature(of("g", base))};
  for (const Gemm& other : others) EXPECT_TRUE(seen.insert(signature(of("g", other))).second);
}

}  // namespace
}  // namespace stepcast
