// SPDX-License-Identifier: Apache-2.0
// What a calibration calls on a GPU, on the emulated one: every memory-bound kernel and attention
// of small programs.
#include "calibrate/measure/gpu/gpu_call.h"

#include "calibrate/protocol/needed_shapes.h"
#include "kernels/cuda/attention_choice.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Scenario gpt(const std::string& precision) {
  testing::GptCase c;
  c.layers = 1;
  c.hidden = 64;
  c.heads = 4;
  c.vocab = 96;
  c.sequence = 32;
  c.precision = precision;
  c.framework = "native";
  c.attention = "flash";
  c.dropout = 0;
  return testing::scenario_from(testing::text_of(c));
}

Scenario llama() {
  return testing::scenario_from(
      R"({"stepcast": 1, "model": {"layers": 1, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 96,
          "vocab": 80, "max_positions": 32, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "biases": false, "tied_embeddings": false, "vocab_multiple": 1, "dropout": 0},
          "cluster": {"base": "dgx-a100-80g", "gpus": 1},
          "training": {"global_batch": 2, "sequence_length": 32, "framework": "native"},
          "layout": {"micro_batch": 2}})");
}

void expect_calls(const Scenario& scenario) {
  cuda::AttentionKernels kernels;
  const GpuContext context{nullptr, &kernels, 0, &scenario};
  int called = 0;
  for (const NeededKernel& needed :
       needed(scenario, lower(scenario), RankGrid(scenario.layout)).kernels) {
    const Operation& operation = needed.operation;
    SCOPED_TRACE(key_of(operation, scenario));
    if (const auto* attention = std::get_if<Attention>(&operation.work)) {
      const GpuCall call = attention_call(*attention, context);
      ASSERT_TRUE(call.run);
      call.run(nullptr);
      ++called;
    } else if (const auto* kernel = std::get_if<Elementwise>(&operation.work)) {
      if (kernel->bytes <= 0) continue;  // another name for a tensor
      const GpuCall call = elementwise_call(operation, *kernel, context);
      if (!call.run && kernel->kind == ElementwiseKind::kCast) continue;  // fp32 stays fp32
      ASSERT_TRUE(call.run);
      call.run(nullptr);
      call.run(nullptr);
      EXPECT_GT(call.bytes, 0);
      EXPECT_LE(call.bytes, 1.01 * kernel->bytes);  // no more passes than the program counts
      ++called;
    }
  }
  EXPECT_GT(called, 12);
}

TEST(GpuCall, EveryKernelOfAProgramIsThere) {
  expect_calls(gpt("bf16"));
  expect_calls(gpt("fp32"));
  expect_calls(llama());
}

TEST(GpuCall, KeysTellKernelsApartThatSignaturesDoNot) {
  const Scenario narrow = gpt("bf16"), wide = gpt("fp32"), gated = llama();
  const Operation norm{
      "norm", Phase::kForward, Elementwise{ElementwiseKind::kNorm, false, 4096, 64, 16384}, {}, {}};
  EXPECT_NE(key_of(norm, narrow), key_of(norm, gated));
  EXPECT_NE(key_of(norm, narrow), key_of(norm, wide));
  const Operation product{
      "qkv",
      Phase::kForward,
      Gemm{GemmRole::kForward, 1, 64, 64, 64, DataType::kBf16, DataType::kBf16, false},
      {},
      {}};
  EXPECT_EQ(key_of(product, narrow), key_of(product, gated));
}

}  // namespace
}  // namespace stepcast
