// SPDX-License-Identifier: Apache-2.0
// The bound is admissible: no replay has a shorter step or a lower peak of memory.
#include "plan/bound.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "layout/data_folders.h"
#include "plan/planning.h"
#include "plan/random_open_scenario.h"
#include "predict/prediction.h"

namespace stepcast {
namespace {

using testing::one_of;
using testing::random_scenario;

void expect_admissible(const std::string& text, SeededRandom& random) {
  const auto planner = planner_of(text);
  ASSERT_NE(planner, nullptr);
  const Space& space = planner->space();
  Scenario scenario = space.base();
  BoundMaker bounds(scenario, planner->pricing());
  SpaceCount count;
  const std::vector<LayoutChoice> branches = space.branches(count);
  for (int i = 0; i < 12 && !branches.empty(); ++i) {
    std::vector<LayoutChoice> layouts;
    space.walk(one_of(branches, random), scenario,
               [&](const LayoutChoice& choice) { layouts.push_back(choice); });
    if (layouts.empty()) continue;
    const LayoutChoice& choice = one_of(layouts, random);
    space.put(choice, scenario);
    if (scenario.micro_batches() * scenario.layout.pp > 512) continue;  // quick ones
    const Bound bound = bounds.bound();
    const auto forecast = planner->predict(choice);
    ASSERT_TRUE(forecast) << to_string(forecast.error());
    EXPECT_LE(bound.time_s, forecast->step_time.value()) << text << "\n" << words(space, choice);
    EXPECT_LE(bound.device_bytes, forecast->peak_device) << text << "\n" << words(space, choice);
    EXPECT_GT(bound.time_s, 0);
  }
}

class Admissible : public ::testing::TestWithParam<int> {};

TEST_P(Admissible, NoReplayIsFasterOrSmallerThanItsBound) {
  SeededRandom random(2024, static_cast<std::uint64_t>(GetParam()));
  expect_admissible(random_scenario(random), random);
}

// Cases that the random scenarios do not contain.
TEST(Bound, IsAdmissibleWithKeysThatChangeTheStep) {
  const char* const texts[] = {
      // Adapters on a pipeline whose first chunk has the embedding only: it gathers nothing.
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-a100-80gx1",
          "training":{"mode":"lora","global_batch":16,"sequence_length":512},
          "layout":{"tp":1,"pp":2,"virtual_stages":2,"schedule":"interleaved",
            "stage_layers":[0,6,5,5],"zero":1,"recompute":"none",
            "overlap":{"grad_reduce":true,"param_gather":true}}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-a100-80gx1",
          "training":{"mode":"qlora","global_batch":16,"sequence_length":512}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"cuda_graphs":true,"precision":"fp16","global_batch":24,
            "sequence_length":512}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"recompute":{"mode":"full","every":2}}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"pp":4,"virtual_stages":1,"stage_layers":[3,8,8,5]}})",
      // A collective per bucket of 25 MiB, and parameters gathered in as many.
      R"({"stepcast":1,"model":"gpt3-6.7b","cluster":"dgx-h100x2",
          "training":{"framework":"native","global_batch":64,"sequence_length":256},
          "layout":{"tp":4,"pp":2,"micro_batch":1,"zero":1,"schedule":"1f1b",
            "overlap":{"pp":true}}})",
      // The host waits for the GPU at each batch, on a pipeline and in a program of its own.
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"framework":"deepspeed","global_batch":32,"sequence_length":1024},
          "layout":{"pp":4,"micro_batch":1}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"framework":"deepspeed","global_batch":32,"sequence_length":1024},
          "layout":{"tp":1,"pp":1,"zero":3}})",
      // Sequences that ranks share, by every method.
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"megatron","global_batch":16,"sequence_length":16384},
          "layout":{"cp":4}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"fsdp","global_batch":16,"sequence_length":16384}})",
      // Between passes a message travels beside the copies of gathered parameters.
      R"({"stepcast":1,"model":"gpt3-6.7b","cluster":{"base":"dgx-a100-80g","nodes":4},
          "training":{"framework":"fsdp","no_sync":true,"global_batch":48,"sequence_length":256},
          "layout":{"tp":1,"pp":32,"dp":1,"micro_batch":6,"schedule":"gpipe","virtual_stages":1,
            "recompute":"full","zero":3}})",
      // A copy of the states in every node, and products in fp8.
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"fsdp","global_batch":32,"sequence_length":1024,
            "precision":"fp8"},
          "layout":{"shard_group":8,"tp":1}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-b200x1",
          "training":{"framework":"megatron","global_batch":32,"sequence_length":1024,
            "precision":"fp8","fp8_recipe":"mxfp8","fp8_params":true}})"};
  SeededRandom random(2024, 99);
  for (const char* text : texts) expect_admissible(text, random);
}

// Passes that run beside each other, wait in host memory or keep every second product.
TEST(Bound, IsAdmissibleWithPassesThatKeepLess) {
  const char* const texts[] = {
      // Tokens that travel beside another micro-batch, with a pipeline and without one.
      R"({"stepcast":1,"model":{"layers":8,"hidden":1024,"heads":16,"kv_heads":16,"ffn":4096,
            "vocab":2048,"mlp":"swiglu","norm":"rmsnorm","position":"rope","biases":false,
            "moe":{"experts":16,"top_k":4,"ffn":512}},
          "cluster":"dgx-h100x2",
          "training":{"framework":"megatron","global_batch":32,"sequence_length":1024},
          "layout":{"tp":1,"cp":1,"ep":8,"etp":1,"dp":8,"pp":2,"virtual_stages":2,
            "schedule":"interleaved","overlap":{"ep":true}}})",
      R"({"stepcast":1,"model":{"layers":8,"hidden":1024,"heads":16,"kv_heads":16,"ffn":4096,
            "vocab":2048,"mlp":"swiglu","norm":"rmsnorm","position":"rope","biases":false,
            "moe":{"experts":16,"top_k":4,"ffn":512}},
          "cluster":"dgx-h100x1",
          "training":{"framework":"megatron","global_batch":32,"sequence_length":1024},
          "layout":{"tp":1,"cp":1,"ep":8,"etp":1,"pp":1,"overlap":{"ep":true}}})",
      // Activations that wait in host memory.
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"pp":1,"offload":{"activations":0.5}}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-a100-80gx1",
          "training":{"framework":"fsdp","global_batch":24,"sequence_length":512},
          "layout":{"pp":1,"recompute":{"mode":"selective","modules":["torchtitan_op"]}}})"};
  SeededRandom random(2024, 100);
  for (const char* text : texts) expect_admissible(text, random);
}

// Weight gradients in passes of their own wait for nobody, which the closed form does not know.
TEST(Bound, SaysNothingOfASplitBackward) {
  const auto planner = planner_of(
      R"({"stepcast":1,"model":"gpt2","cluster":"dgx-a100-80gx1","training":{"global_batch":8}})");
  ASSERT_NE(planner, nullptr);
  Scenario scenario = planner->space().base();
  BoundMaker bounds(scenario, planner->pricing());
  EXPECT_GT(bounds.bound().time_s, 0);
  scenario.layout.schedule = schedule_named("zb-h1");
  EXPECT_EQ(bounds.bound().time_s, 0);
  EXPECT_EQ(bounds.bound().device_bytes, 0);
}

// Channels that hold little of a GPU slow its kernels little.
TEST(Bound, IsAdmissibleWithAProfileOfWhatChannelsHold) {
  std::ifstream in(source_folders().profiles + "/a100-sxm4-80g.json");
  nlohmann::json profile = nlohmann::json::parse(in);
  SeededRandom random(2024, 100);
  for (const double sms : {0.0, 8.0}) {
    profile["overlap"] = {{"sms_per_channel", sms}};
    const std::string path =
        ::testing::TempDir() + fmt::format("stepcast_bound_{}.json", static_cast<int>(sms));
    std::ofstream(path) << profile;
    const auto pipeline_of = [&](const char* model, const char* training) {
      return fmt::format(
          R"({{"stepcast":1,"model":"{}","cluster":"dgx-a100-80gx1","profile":"{}",)"
          R"("training":{{"framework":"megatron",{}"global_batch":128,"sequence_length":2048}},)"
          R"("layout":{{"tp":1,"pp":4,"virtual_stages":2,"schedule":"interleaved",)"
          R"("micro_batch":1,"recompute":"none","overlap":{{"pp":true}}}}}})",
          model, path, training);
    };
    expect_admissible(pipeline_of("gpt3-1.3b", ""), random);
    // Kernels that the host has not issued in time are not slowed, even where it needs little.
    expect_admissible(pipeline_of("llama-2-7b", R"("host_sync_at_batch":true,"cuda_graphs":true,)"),
                      random);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Admissible, ::testing::Range(0, 40));

}  // namespace
}  // namespace stepcast
