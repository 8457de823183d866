// SPDX-License-Identifier: Apache-2.0
// Training in TF32 is training in fp32 whose products round what they read; bf16 moments are states
// of half the bytes.
#include <gtest/gtest.h>

#include <string>

#include "memory/states.h"
#include "program/decoder_layer.h"
#include "program/executable.h"
#include "program/optimizer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

GptCase in(const std::string& precision, const std::string& attention = "flash") {
  GptCase c;
  c.precision = precision;
  c.attention = attention;
  return c;
}

// Everything else of a layer, bytes included, is that of fp32.
TEST(Tf32, IsWhatProductsAndAttentionComputeInAndNothingIsStoredIn) {
  for (const char* attention : {"flash", "unfused"}) {
    const Block tf32 = lower_decoder_layer(gpt(in("tf32", attention)), RecomputeMode::kNone);
    const Block fp32 = lower_decoder_layer(gpt(in("fp32", attention)), RecomputeMode::kNone);
    ASSERT_EQ(tf32.buffers.size(), fp32.buffers.size());
    for (std::size_t i = 0; i < tf32.buffers.size(); ++i) {
      EXPECT_EQ(tf32.buffers[i].type, fp32.buffers[i].type) << tf32.buffers[i].name;
    }
    int products = 0;
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      for (const Operation& operation : tf32.pass(pass).operations) {
        if (const auto product = product_of(operation.work)) {
          EXPECT_EQ(product->input, DataType::kTf32) << operation.name;
          EXPECT_EQ(product->output, DataType::kFp32) << operation.name;
          ++products;
        } else if (const auto* fused = std::get_if<Attention>(&operation.work)) {
          EXPECT_EQ(fused->type, DataType::kTf32);
          ++products;
        }
      }
    }
    EXPECT_GT(products, 10) << attention;
  }
}

TEST(Tf32, KeepsTheStatesOfFp32) {
  const Scenario scenario = gpt(in("tf32"));
  EXPECT_EQ(scenario.training.grad_precision, DataType::kFp32);
  EXPECT_EQ(state_bytes(scenario, 1000).total(), 16 * 1000);
}

TEST(Tf32, IsNotRunByTheExecutor) {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    const Errors errors = check_executable(gpt(in("tf32")), backend);
    ASSERT_FALSE(errors.empty());
    EXPECT_EQ(errors.front().path, "training.precision");
  }
}

double update_bytes(const Scenario& scenario) {
  const Program program = lower(scenario);
  const Block block = lower_update(scenario, program.roles.front());
  for (const Operation& operation : block.pass(Pass::kForward).operations) {
    if (const auto* update = std::get_if<OptimizerUpdate>(&operation.work)) {
      return update->size.bytes / static_cast<double>(update->size.elements);
    }
  }
  return 0;
}

// Both moments are read and written: 2 bytes less of each, four times.
TEST(NarrowMoments, AreReadAndWrittenInTwoBytes) {
  GptCase c;
  const double wide = update_bytes(gpt(c));
  c.extra_training = R"(, "moments_precision": "bf16")";
  EXPECT_EQ(wide - update_bytes(gpt(c)), 8);
}

}  // namespace
}  // namespace stepcast
