// SPDX-License-Identifier: Apache-2.0
// The bound is admissible: no replay has a shorter step or a lower peak of memory.
#include "plan/bound.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/seeded_random.h"
#include "plan/planning.h"

namespace stepcast {
namespace {

template <class T>
const T& one_of(const std::vector<T>& list, SeededRandom& random) {
  return list[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(list.size())))];
}

// Models of both forms, tied and untied, with layers that stages do not divide; nodes on a switch,
// on PCIe, and partly used; all frameworks and kinds of clipping.
std::string random_scenario(SeededRandom& random) {
  const std::string model = one_of<std::string>({"gpt3-1.3b", "llama-3.2-1b", "gpt2", "gpt3-6.7b",
                                                 "llama-2-7b", "megatron-3.6b", "qwen2.5-3b"},
                                                random);
  const std::string cluster = one_of<std::string>(
      {R"({"base":"dgx-a100-80g","nodes":1})", R"({"base":"dgx-a100-80g","nodes":4})",
       R"({"base":"dgx-h100","nodes":2})", R"({"base":"pcie-4090-8","nodes":1})",
       R"({"base":"dgx-a100-80g","gpus":12})",
       R"({"base":"dgx-h100","nodes":2,"nics_per_node":1})"},
      random);
  const std::string framework =
      one_of<std::string>({"", R"("framework":"megatron",)", R"("framework":"deepspeed",)",
                           R"("framework":"fsdp",)", R"("framework":"native",)"},
                          random);
  const std::string clip =
      one_of<std::string>({"", R"("grad_clip":"none",)", R"("no_sync":true,)"}, random);
  return fmt::format(
      R"({{"stepcast":1,"model":"{}","cluster":{},"training":{{{}{}"global_batch":{},)"
      R"("sequence_length":{}}}}})",
      model, cluster, framework, clip, one_of<std::int64_t>({24, 48, 64}, random),
      one_of<std::int64_t>({256, 1024}, random));
}

class Admissible : public ::testing::TestWithParam<int> {};

TEST_P(Admissible, NoReplayIsFasterOrSmallerThanItsBound) {
  SeededRandom random(2024, static_cast<std::uint64_t>(GetParam()));
  const std::string text = random_scenario(random);
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

INSTANTIATE_TEST_SUITE_P(Seeds, Admissible, ::testing::Range(0, 40));

}  // namespace
}  // namespace stepcast
