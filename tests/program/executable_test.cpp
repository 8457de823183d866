// SPDX-License-Identifier: Apache-2.0
#include "program/executable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::small_local;

using Paths = std::vector<std::string>;

Paths refused(const Scenario& scenario, Backend backend) {
  Paths out;
  for (const Error& error : check_executable(scenario, backend)) {
    EXPECT_EQ(error.code, ErrorCode::kNotSupported);
    const char* name = backend == Backend::kCpu ? "the CPU backend" : "the CUDA backend";
    EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
    EXPECT_NE(error.hint, "");
    out.push_back(error.path);
  }
  return out;
}

GptCase on_gpus() {
  GptCase c;
  c.framework = "native";
  c.dropout = 0;
  return c;
}

TEST(Executable, EachBackendHasItsTypes) {
  EXPECT_EQ(refused(gpt(small_local()), Backend::kCpu), Paths{});
  EXPECT_EQ(refused(gpt(small_local()), Backend::kCuda), Paths{});
  GptCase c = on_gpus();
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(gpt(c), Backend::kCpu),
            (Paths{"training.precision", "training.grad_precision", "training.reduce_precision"}));
  c.precision = "fp16";
  EXPECT_EQ(refused(gpt(c), Backend::kCuda),
            (Paths{"training.precision", "training.grad_precision"}));
}

TEST(Executable, OnGpusTheWireHasTheTypeOfTheGradientsExceptUnderFsdp) {
  GptCase c = on_gpus();
  c.extra_training = R"(, "grad_precision": "fp32", "reduce_precision": "bf16")";
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{"training.reduce_precision"});
  c.framework = "fsdp";
  c.zero = 3;
  EXPECT_EQ(refused(gpt(c), Backend::kCuda), Paths{});
}

TEST(Executable, RefusesWhatNoBackendRuns) {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    GptCase c = small_local();
    c.dropout = 0.1;
    c.tp = 2;
    c.sequence_parallel = true;
    c.extra_layout = R"(, "overlap": {"tp": true})";
    EXPECT_EQ(refused(gpt(c), backend), (Paths{"model.dropout", "layout.overlap.tp"}));
  }
}

TEST(Executable, HeadsOfGpusAreEvenAndAtMost256) {
  const auto heads_of = [](int size) {
    GptCase c = on_gpus();
    c.heads = 4;
    c.hidden = 4 * size;
    return gpt(c);
  };
  EXPECT_EQ(refused(heads_of(256), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(heads_of(96), Backend::kCuda), Paths{});
  EXPECT_EQ(refused(heads_of(258), Backend::kCuda), Paths{"model.head_dim"});
  EXPECT_EQ(refused(heads_of(65), Backend::kCuda), Paths{"model.head_dim"});
}

TEST(NumericsLimits, FollowFromTheRoundingOfTheType) {
  const NumericsLimits exact = numerics_limits(DataType::kFp32);
  EXPECT_EQ(exact.loss, kNumericsLimit);
  EXPECT_EQ(exact.parameters, kNumericsLimit);
  // Two roundings a layer of 40 layers, of random sign and at most 2^-9 each.
  const double activation = std::pow(2.0, -9) / std::sqrt(3.0) * std::sqrt(2.0 * 40);
  EXPECT_NEAR(numerics_limits(DataType::kBf16).loss / activation, 1, 0.02);
  EXPECT_FALSE(numerics_limits(DataType::kBf16).parameters);
}

}  // namespace
}  // namespace stepcast
