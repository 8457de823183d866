// SPDX-License-Identifier: Apache-2.0
#include "plan/layout_code.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/layout_dimension.h"
#include "plan/planning.h"

namespace stepcast {
namespace {

// Sub-results are remembered by the code: two values with one code would share a result.
TEST(LayoutCode, TellsEveryDimensionApart) {
  const auto planner = planner_of(
      R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
          "training":{"global_batch":16,"sequence_length":1024}})");
  ASSERT_NE(planner, nullptr);
  const Scenario scenario = planner->space().base();
  for (const LayoutDimension& dimension : layout_dimensions()) {
    std::set<std::size_t> codes;
    // If this scenario leaves a key one value, another is put by hand.
    std::set<std::int64_t> values = {dimension.of(scenario.layout),
                                     dimension.of(scenario.layout) == 0 ? 1 : 0};
    const auto searched = dimension.values(scenario);
    if (searched.size() > 1) values = {searched.begin(), searched.end()};
    ASSERT_GT(values.size(), 1u);
    for (const std::int64_t value : values) {
      Scenario changed = scenario;
      dimension.put(changed, value);
      codes.insert(LayoutCode(changed).hash());
    }
    EXPECT_EQ(codes.size(), values.size()) << dimension.path;
  }
}

}  // namespace
}  // namespace stepcast
