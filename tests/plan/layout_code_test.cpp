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
  Scenario scenario = planner->space().base();
  for (const LayoutDimension& dimension : layout_dimensions()) {
    std::set<std::size_t> codes;
    const auto values = dimension.values(scenario);
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
