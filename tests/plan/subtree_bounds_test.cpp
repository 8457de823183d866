// SPDX-License-Identifier: Apache-2.0
// The bound of a partial layout is admissible: none of its completions has a lower one.
#include "plan/subtree_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/each.h"
#include "plan/bound.h"
#include "plan/planning.h"
#include "plan/random_open_scenario.h"

namespace stepcast {
namespace {

using testing::one_of;
using testing::random_scenario;

struct Bounded {
  LayoutChoice choice;
  Bound bound;
};

std::vector<Bounded> completions(const Space& space, const LayoutChoice& partial,
                                 Scenario& scenario, BoundMaker& bounds) {
  std::vector<Bounded> out;
  space.walk(partial, scenario, [&](const LayoutChoice& choice) {
    out.push_back({choice, bounds.bound()});
  });
  return out;
}

void expect_below(const SubtreeBound& bound, const Bounded& one, ByteCount limit,
                  const std::string& words) {
  EXPECT_LE(bound.any_time_s, one.bound.time_s) << words;
  EXPECT_LE(bound.device_bytes, one.bound.device_bytes) << words;
  if (one.bound.device_bytes > limit) return;
  EXPECT_LE(bound.time_s, one.bound.time_s) << words;
}

// Partial layouts of all depths on the way to some legal layout, and all their completions.
void expect_admissible_subtrees(const std::string& text, SeededRandom& random, AtLeast& compared) {
  const auto planner = planner_of(text);
  ASSERT_NE(planner, nullptr);
  const Space& space = planner->space();
  Scenario scenario = space.base();
  BoundMaker bounds(scenario, planner->pricing());
  // A limit that some completions keep, and some do not.
  const ByteCount memory = scenario.cluster.spec.accelerator.memory;
  const ByteCount limit = memory / one_of<std::int64_t>({1, 2, 4}, random);
  SubtreeBounds subtrees(space, scenario, bounds, limit);
  SpaceCount count;
  const std::vector<LayoutChoice> branches = space.branches(count);
  for (int i = 0; i < 3 && !branches.empty(); ++i) {
    LayoutChoice partial = one_of(branches, random);
    for (const std::size_t depth : subtrees.depths()) {
      std::vector<LayoutChoice> parts;
      space.walk_to(depth, partial, scenario,
                    [&](const LayoutChoice& choice) { parts.push_back(choice); });
      if (parts.empty()) break;
      partial = one_of(parts, random);
      subtrees.enter(partial);
      const SubtreeBound bound = subtrees.bound(partial);
      for (const Bounded& one : completions(space, partial, scenario, bounds)) {
        expect_below(bound, one, limit, text + "\n" + words(space, one.choice));
        ++compared;
      }
    }
  }
}

class Subtrees : public ::testing::TestWithParam<int> {};

TEST_P(Subtrees, NoCompletionIsFasterOrSmallerThanTheBoundOfItsPart) {
  SeededRandom random(2025, static_cast<std::uint64_t>(GetParam()));
  AtLeast compared(1);
  for (int i = 0; i < 3; ++i) {
    const std::string text = random_scenario(random);
    expect_admissible_subtrees(text, random, compared);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Subtrees, ::testing::Range(0, 20));

// Cases that the random scenarios do not contain: experts, shared sequences, adapters, fp8,
// optimizers that hold other states, recomputation that is stated in part, stages of unlike length.
TEST(SubtreeBounds, AreAdmissibleWithKeysThatChangeTheStep) {
  const char* const texts[] = {
      R"({"stepcast":1,"model":{"layers":8,"hidden":1024,"heads":16,"kv_heads":16,"ffn":4096,
            "vocab":2048,"mlp":"swiglu","norm":"rmsnorm","position":"rope","biases":false,
            "moe":{"experts":16,"top_k":4,"ffn":512}},
          "cluster":"dgx-h100x2","training":{"global_batch":32,"sequence_length":1024}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"megatron","global_batch":16,"sequence_length":16384}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"fsdp","global_batch":16,"sequence_length":16384}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-a100-80gx1",
          "training":{"mode":"qlora","global_batch":16,"sequence_length":512}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-b200x1",
          "training":{"framework":"megatron","global_batch":32,"sequence_length":1024,
            "precision":"fp8","fp8_recipe":"mxfp8","fp8_params":true}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"optimizer":"muon","global_batch":32,"sequence_length":1024}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"deepspeed","optimizer":"muon","global_batch":32,
            "sequence_length":1024}})",
      R"({"stepcast":1,"model":"llama-3.2-1b","cluster":"dgx-h100x2",
          "training":{"framework":"fsdp","optimizer":"muon","global_batch":32,
            "sequence_length":1024}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"recompute":{"mode":"full","every":2}}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"pp":4,"virtual_stages":1,"stage_layers":[3,8,8,5]}})",
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":24,"sequence_length":512},
          "layout":{"schedule":"1f1b","overlap":{"pp":false}}})"};
  SeededRandom random(2025, 99);
  for (const char* text : texts) {
    AtLeast compared(1);
    expect_admissible_subtrees(text, random, compared);
  }
}

}  // namespace
}  // namespace stepcast
