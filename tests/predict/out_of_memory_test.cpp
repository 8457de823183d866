// SPDX-License-Identifier: Apache-2.0
// Published trials that ran out of memory, beside those of their table that ran.
#include <gtest/gtest.h>

#include <string>

#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Llama 2 70B under FSDP2 on 64 A100 of 80 GB, rows of 4,096 tokens, nothing compiled.
Scenario llama_70b(const std::string& recompute, int micro_batch) {
  return testing::scenario_from(
      R"({"stepcast":1,"model":{"layers":80,"hidden":8192,"heads":64,"kv_heads":8,"ffn":28672,
          "vocab":32000,"mlp":"swiglu","norm":"rmsnorm","position":"rope","tied_embeddings":false,
          "biases":false},"cluster":{"base":"dgx-a100-80g","gpus":64},
          "training":{"global_batch":)" +
      std::to_string(64 * micro_batch) + R"(,"sequence_length":4096,"framework":"fsdp",
          "compile":false},"layout":{"zero":3,"micro_batch":)" +
      std::to_string(micro_batch) + R"(,"recompute":)" + recompute + "}}");
}

// pytorch/torchtitan, docs/performance.md (2024): two sequences on each GPU ran out of memory with
// both kinds of selective checkpoints, every second layer and by operation. They ran with all
// layers checkpointed, and so did one sequence by operation.
TEST(OutOfMemory, IsForecastWhereTorchtitanRanOutOfIt) {
  const std::string by_operation = R"({"mode":"selective","modules":["torchtitan_op"]})";
  const std::string second_layers = R"({"mode":"full","every":2})";
  const auto fits = [](const Scenario& scenario) {
    const auto forecast = predict(scenario, testing::source_folders(), {});
    EXPECT_TRUE(forecast) << to_string(forecast.error());
    return forecast && forecast->fits;
  };
  EXPECT_FALSE(fits(llama_70b(second_layers, 2)));
  EXPECT_FALSE(fits(llama_70b(by_operation, 2)));
  EXPECT_TRUE(fits(llama_70b(by_operation, 1)));
  EXPECT_TRUE(fits(llama_70b(R"("full")", 2)));
}

}  // namespace
}  // namespace stepcast
