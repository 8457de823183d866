// SPDX-License-Identifier: Apache-2.0
// A calibration calls every kernel of small programs on a GPU, here on the emulated one.
#include "calibrate/measure/gpu/gpu_call.h"

#include <fmt/format.h>

#include "calibrate/protocol/needed_shapes.h"
#include "kernels/cuda/cuda_kernels.h"
#include "operation/signature.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

Scenario gpt(const std::string& precision, const std::string& attention) {
  testing::GptCase c;
  c.layers = 1;
  c.hidden = 64;
  c.heads = 4;
  c.vocab = 96;
  c.sequence = 32;
  c.precision = precision;
  c.framework = "native";
  c.attention = attention;
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

Scenario experts(const std::string& precision) {
  return testing::scenario_from(
      R"({"stepcast": 1, "model": {"layers": 1, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 96,
          "vocab": 80, "max_positions": 32, "mlp": "swiglu", "norm": "rmsnorm", "position": "rope",
          "biases": false, "tied_embeddings": false, "vocab_multiple": 1, "dropout": 0,
          "moe": {"experts": 8, "top_k": 2, "ffn": 48}},
          "cluster": {"base": "dgx-a100-80g", "gpus": 2},
          "training": {"global_batch": 4, "sequence_length": 32, "framework": "native",
                       "precision": ")" +
      precision + R"("}, "layout": {"micro_batch": 2, "dp": 2, "ep": 2, "zero": 1}})");
}

void expect_calls(const Scenario& scenario) {
  cuda::CudaKernels kernels({}, {});
  const GpuContext context{&kernels, 0};
  int called = 0;
  for (const NeededKernel& needed :
       needed(scenario, lower(scenario), RankGrid(scenario.layout)).kernels) {
    const Operation& operation = needed.operation;
    SCOPED_TRACE(signature(operation));
    const GpuCall call = gpu_call(operation.work, context);
    ASSERT_TRUE(call.run);
    call.run(nullptr);
    ++called;
    const auto kernel = memory_bound(operation.work);
    if (!kernel) continue;
    EXPECT_GT(call.bytes, 0);
    EXPECT_LE(call.bytes, 1.01 * kernel->bytes);  // no more passes than the program counts
  }
  EXPECT_GT(called, 12);
}

TEST(GpuCall, EveryKernelOfAProgramIsThere) {
  expect_calls(gpt("bf16", "flash"));
  expect_calls(gpt("fp32", "flash"));
  expect_calls(gpt("bf16", "unfused"));
  expect_calls(llama());
  expect_calls(experts("bf16"));
  expect_calls(experts("fp32"));
}

// The executor drops nothing, and frameworks do.
TEST(GpuCall, DropoutIsThere) {
  cuda::CudaKernels kernels({}, {});
  const GpuContext context{&kernels, 0};
  const KernelSize size{4096, 64, 3 * 2 * 4096};
  for (const bool backward : {false, true}) {
    const GpuCall call = gpu_call(Dropout{backward, DataType::kBf16, size}, context);
    ASSERT_TRUE(call.run);
    call.run(nullptr);
  }
  for (const bool bias : {false, true}) {
    const GpuCall call = gpu_call(ResidualAdd{false, bias, true, DataType::kBf16, size}, context);
    ASSERT_TRUE(call.run);
    call.run(nullptr);
  }
}

TEST(GpuCall, ThereIsNoneForWhatNoKernelRuns) {
  cuda::CudaKernels kernels({}, {});
  const GpuContext context{&kernels, 0};
  const KernelSize size{4096, 64, 3 * 2 * 4096};
  EXPECT_FALSE(gpu_call(AdapterScale{DataType::kBf16, size}, context).run);
  EXPECT_TRUE(gpu_call(ResidualAdd{false, false, false, DataType::kBf16, size}, context).run);
  EXPECT_FALSE(gpu_call(Alias{}, context).run);
  Attention attention{false, 1, 2, 2, 64, 64, 64, true, DataType::kBf16};
  EXPECT_TRUE(gpu_call(attention, context).run);
  attention.window = {16};
  EXPECT_FALSE(gpu_call(attention, context).run);
}

// Products of fp8, of experts too, and the casts before them; the executor has neither.
TEST(GpuCall, ProgramsInFp8AreThere) {
  for (const char* model : {R"("ffn": 96)", R"("ffn": 96, "moe": {"experts": 4, "top_k": 2,
                                             "ffn": 48})"}) {
    expect_calls(testing::scenario_from(fmt::format(
        R"({{"stepcast": 1, "model": {{"layers": 1, "hidden": 64, "heads": 4, "kv_heads": 4,
            "vocab": 80, "max_positions": 32, "mlp": "swiglu", "norm": "rmsnorm",
            "position": "rope", "biases": false, "tied_embeddings": false, "vocab_multiple": 1,
            "dropout": 0, {}}},
            "cluster": {{"base": "dgx-h100", "gpus": 1}},
            "training": {{"global_batch": 2, "sequence_length": 32, "framework": "megatron",
                          "precision": "fp8", "fp8_recipe": "current"}},
            "layout": {{"micro_batch": 2}}}})",
        model)));
  }
}

TEST(GpuCall, RunsProductsOneByOneAndInBatches) {
  cuda::CudaKernels kernels({}, {});
  const GpuContext context{&kernels, 0};
  Gemm gemm{GemmRole::kForward, 1, 16, 16, 16, DataType::kBf16, DataType::kBf16, false};
  for (const std::int64_t batch : {1, 3}) {
    gemm.batch = batch;
    const GpuCall call = gpu_call(gemm, context);
    ASSERT_TRUE(call.run);
    call.run(nullptr);
  }
}

}  // namespace
}  // namespace stepcast
