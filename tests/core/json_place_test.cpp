// SPDX-License-Identifier: Apache-2.0
#include "core/json_place.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TEST(JsonPlace, AValueIsOnTheLineOnWhichItBegins) {
  const char* text =
      "{\n"
      "  \"id\": \"a [\\\" }\",\n"
      "  \"rows\": [\n"
      "    [1, 2], [3,\n"
      "     4],\n"
      "    {\"x\": {\"y\": 5}, \"z\":\n"
      "     null}\n"
      "  ]\n"
      "}\n";
  EXPECT_EQ(line_of(text, ""), 1);
  EXPECT_EQ(line_of(text, "id"), 2);
  EXPECT_EQ(line_of(text, "rows"), 3);
  EXPECT_EQ(line_of(text, "rows[0][1]"), 4);
  EXPECT_EQ(line_of(text, "rows[1]"), 4);
  EXPECT_EQ(line_of(text, "rows[1][1]"), 5);
  EXPECT_EQ(line_of(text, "rows[2].x.y"), 6);
  EXPECT_EQ(line_of(text, "rows[2].z"), 7);
}

TEST(JsonPlace, APathThatLeadsNowhereIsAtItsLastValue) {
  const char* text = "[\n{\"rows\":\n[1]}\n]";
  EXPECT_EQ(line_of(text, "[0].rows[7]"), 3);
  EXPECT_EQ(line_of(text, "[0].columns"), 2);
  EXPECT_EQ(line_of(text, "[0][1]"), 2);
  EXPECT_EQ(line_of("", "a.b"), 1);
  EXPECT_EQ(line_of("[1", "[3]"), 1);
  EXPECT_EQ(line_of("[\"1", "[3]"), 1);
  EXPECT_EQ(line_of("{\"a\":[[{", "b"), 1);
  EXPECT_EQ(line_of("[1]", "[0"), 1);
}

}  // namespace
}  // namespace stepcast
