// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/gpu_condition.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "core/json_tree.h"
#include "core/text/escape.h"

namespace stepcast {
namespace {

TEST(GpuCondition, TypicalIsTheMedianOfWhatIsTold) {
  const GpuCondition typical =
      typical_of({{1980, 400, {}}, {1410, 700, {"power_cap"}}, {1500, 690, {}}, {0, 0, {}}});
  EXPECT_EQ(typical.sm_clock_mhz, 1500);
  EXPECT_EQ(typical.power_w, 690);
  EXPECT_EQ(typical.held_by, (std::set<std::string>{"power_cap"}));
  EXPECT_EQ(typical_of({}).sm_clock_mhz, 0);
}

// A product at the power limit is what a step has; a hot board is not.
TEST(GpuCondition, ThePowerCapIsNoDisturbance) {
  EXPECT_FALSE(is_protecting({1410, 700, {"power_cap"}}));
  EXPECT_TRUE(is_protecting({1410, 700, {"power_cap", "hardware_thermal"}}));
  EXPECT_FALSE(is_protecting({}));
}

TEST(GpuCondition, ComesBackFromItsJson) {
  for (const GpuCondition& told :
       {GpuCondition{1755, 690.5, {"power_cap", "software_thermal"}}, GpuCondition{}}) {
    const auto document = JsonDocument::parse(json_text(to_json(told)), "test");
    const GpuCondition read = read_gpu_condition((*document)->root());
    EXPECT_TRUE((*document)->ok()) << to_string((*document)->errors());
    EXPECT_EQ(read.sm_clock_mhz, told.sm_clock_mhz);
    EXPECT_EQ(read.power_w, told.power_w);
    EXPECT_EQ(read.held_by, told.held_by);
  }
}

TEST(GpuCondition, SaysOnlyWhatIsTold) {
  EXPECT_EQ(words_of({1755, 690, {"power_cap"}}), ", at 1755 MHz, 690 W, held by power_cap");
  EXPECT_EQ(words_of({}), "");
}

}  // namespace
}  // namespace stepcast
