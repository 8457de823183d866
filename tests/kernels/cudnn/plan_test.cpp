// SPDX-License-Identifier: Apache-2.0
// cuDNN's own library on the graphs of attention: it checks, recognizes and compiles them for an
// H100 or H200 that it is told of, on a machine without a GPU. Nothing runs.
#include "kernels/cuda/cudnn/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/attention_graph.h"
#include "operation/attention_parts.h"
#include "program/executor_workspace.h"

namespace stepcast::cuda {
namespace {

// NVIDIA, "CUDA C++ Programming Guide", compute capability 9.0, and "H200 Tensor Core GPU".
constexpr std::string_view kH200 = R"({
  "deviceName": "NVIDIA H200", "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0,
  "deviceVer": 900, "driverVer": 13000, "supportCoopLaunch": 1,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024,
  "l2CacheSize": 52428800, "totalGlobalMem": 151397597184, "memClockRateKHz": 3201000})";

// The attention of each scenario in scripts/gpu-campaign, as rank 0 has it.
constexpr AttentionShape kCampaign[] = {{8, 25, 25, 1024, 64, true},   // gpt2-xl
                                        {1, 48, 48, 2048, 128, true},  // gpt3-175b-tp2
                                        {1, 12, 12, 2048, 128, true},  // gpt3-175b-tp8
                                        {1, 16, 1, 8192, 128, true},   // llama-3.1-405b-tp8
                                        {1, 8, 1, 8192, 128, true},    // llama-3.1-70b-tp8
                                        {1, 32, 8, 4096, 128, true},   // llama-3.1-8b-tp1
                                        {1, 8, 2, 8192, 128, true},    // llama-3.1-8b-tp4
                                        {2, 32, 8, 4096, 64, true},    // llama-3.2-1b
                                        {1, 24, 8, 4096, 128, true},   // llama-3.2-3b
                                        {2, 16, 4, 1024, 64, true}};   // numerics

class CudnnPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_cudnn()) GTEST_SKIP() << *why;
  }

  static Descriptor h200() { return device_of(std::string(kH200)); }
  // An H100 is this chip, with less memory.
  static Descriptor h100() {
    std::string text(kH200);
    const auto replace = [&](std::string_view from, std::string_view to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("NVIDIA H200", "NVIDIA H100 80GB HBM3");
    replace("151397597184", "84929347584");
    return device_of(text);
  }
  static Descriptor device_of(const std::string& properties) {
    std::vector<char> text(properties.begin(), properties.end());
    text.push_back('\0');
    Descriptor out(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    out.set_all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text).finalize();
    return out;
  }

  // A layer has its heads in packed rows of queries, keys and values.
  static AttentionProblem problem(const AttentionShape& shape, bool backward,
                                  DataType type = DataType::kBf16) {
    const std::int64_t width = shape.heads * shape.head_dim;
    const std::int64_t packed = width + 2 * shape.kv_heads * shape.head_dim;
    return {shape,  type,  backward, true,   packed, packed,
            packed, width, width,    packed, packed, packed};
  }
};

TEST_F(CudnnPlan, ForwardPassesNeedNoWorkspaceForScores) {
  const Descriptor device = h200();
  for (const AttentionShape& shape : {AttentionShape{1, 25, 25, 1024, 64, true},
                                      {1, 32, 8, 4096, 128, true},
                                      {2, 12, 12, 1024, 96, false},
                                      {1, 8, 8, 2048, 256, true}}) {
    SCOPED_TRACE(fmt::format("heads of {}", shape.head_dim));
    const ForwardGraph of(problem(shape, false));
    EXPECT_LE(Plan(device, of.graph).workspace_bytes(), 1 << 20);
  }
  const ForwardGraph halves(problem({1, 32, 8, 4096, 128, true}, false, DataType::kFp16));
  EXPECT_LE(Plan(device, halves.graph).workspace_bytes(), 1 << 20);
}

TEST_F(CudnnPlan, BackwardPassesWithoutAtomicsKeepTheScoresGradientsInMemory) {
  const Descriptor device = h200();
  for (const AttentionShape& shape :
       {AttentionShape{1, 25, 25, 1024, 64, true}, {1, 32, 8, 4096, 128, true}}) {
    SCOPED_TRACE(fmt::format("heads of {}", shape.head_dim));
    const std::int64_t scores = shape.batch * shape.heads * shape.sequence * shape.sequence;
    const BackwardGraph same_bits(problem(shape, true), true);
    EXPECT_GE(Plan(device, same_bits.graph).workspace_bytes(), 2 * scores);
    const BackwardGraph atomics(problem(shape, true), false);
    EXPECT_LT(Plan(device, atomics.graph).workspace_bytes(), scores);
  }
}

TEST_F(CudnnPlan, WorkspaceIsThatOfTheForecast) {
  constexpr std::int64_t kBeside = 4096;  // some hundred bytes, which the forecast leaves out
  const Descriptor small = h100(), large = h200();
  int plans = 0;  // of three for each shape, which take seconds: the chips take turns
  const auto device = [&]() -> const Descriptor& { return ++plans % 2 == 1 ? small : large; };
  for (const AttentionShape& shape : kCampaign) {
    SCOPED_TRACE(
        fmt::format("{} heads of {} in {} tokens", shape.heads, shape.head_dim, shape.sequence));
    EXPECT_LE(Plan(device(), ForwardGraph(problem(shape, false)).graph).workspace_bytes(), kBeside);
    const Attention attention{true,           shape.batch,    shape.heads,
                              shape.kv_heads, shape.sequence, shape.sequence,
                              shape.head_dim, shape.causal,   DataType::kBf16};
    for (const bool same_bits : {true, false}) {
      std::int64_t bytes =
          Plan(device(), BackwardGraph(problem(shape, true), same_bits).graph).workspace_bytes();
      // Sums by atomics are this program's own array.
      if (!same_bits) bytes += 4 * shape.batch * shape.heads * shape.sequence * shape.head_dim;
      const std::int64_t forecast = attention_workspace(
          attention, same_bits ? AttentionBy::kSameBits : AttentionBy::kAtomics);
      EXPECT_GE(bytes, forecast);
      EXPECT_LE(bytes, forecast + kBeside);
    }
  }
}

TEST_F(CudnnPlan, RefusesHeadsThatAreNoMultipleOfEight) {
  const Descriptor device = h200();
  const ForwardGraph of(problem({1, 4, 4, 128, 100, true}, false));
  EXPECT_THROW(Plan(device, of.graph), CudaError);
}

}  // namespace
}  // namespace stepcast::cuda
