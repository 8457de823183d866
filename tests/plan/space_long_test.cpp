// SPDX-License-Identifier: Apache-2.0
// The space of layouts beside every combination of its values.
#include <gtest/gtest.h>

#include <set>

#include "core/text/escape.h"
#include "layout/read_scenario.h"
#include "plan/layout_code.h"
#include "plan/planning.h"
#include "plan/space.h"

namespace stepcast {
namespace {

constexpr const char* kSmallSpace = R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
    "training":{"global_batch":16,"sequence_length":1024}})";

// Visits every combination of distinct values, whether or not the rules allow it.
void walk_unchecked(const Space& space, std::size_t level, LayoutChoice& choice, Scenario& scenario,
                    std::vector<LayoutChoice>& out) {
  if (level == space.dimensions().size()) {
    out.push_back(choice);
    return;
  }
  space.put(choice, scenario);
  for (const std::int64_t value : space.dimensions()[level]->distinct(scenario)) {
    choice.values[level] = static_cast<std::int32_t>(value);
    walk_unchecked(space, level + 1, choice, scenario, out);
  }
  choice.values[level] = LayoutChoice::kUnset;
}

// They do so from 16384 tokens on, with 4096 of them or more on a rank.
TEST(Space, CuttingSubtreesLosesNoLegalLayoutAndKeepsNoOther) {
  for (const char* text :
       {R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
            "training":{"global_batch":6,"sequence_length":1024},"layout":{"recompute":"none"}})",
        R"({"stepcast":1,"model":"llama-3.2-1b","cluster":{"base":"dgx-a100-80g","gpus":12},
            "training":{"framework":"deepspeed","global_batch":8,"sequence_length":516}})",
        R"({"stepcast":1,"model":"gpt2","cluster":"dgx-a100-80gx1",
            "training":{"framework":"fsdp","global_batch":8,"sequence_length":512}})"}) {
    const auto planner = planner_of(text);
    ASSERT_NE(planner, nullptr);
    const Space& space = planner->space();
    Scenario scenario = space.base();
    std::vector<LayoutChoice> all, legal;
    LayoutChoice choice;
    walk_unchecked(space, 0, choice, scenario, all);
    for (const LayoutChoice& one : all) {
      if (space.objections(one, scenario).empty()) legal.push_back(one);
    }
    ASSERT_FALSE(legal.empty());
    ASSERT_LT(legal.size(), all.size());
    EXPECT_EQ(all_layouts(space), legal) << text;
  }
}

TEST(Space, NoLayoutComesTwice) {
  const auto planner = planner_of(kSmallSpace);
  ASSERT_NE(planner, nullptr);
  const Space& space = planner->space();
  Scenario scenario = space.base();
  std::set<std::string> seen;
  for (const LayoutChoice& choice : all_layouts(space)) {
    space.put(choice, scenario);
    EXPECT_TRUE(seen.insert(json_text(to_json(scenario)["layout"])).second) << words(space, choice);
  }
}

}  // namespace
}  // namespace stepcast
