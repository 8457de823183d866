// SPDX-License-Identifier: Apache-2.0
#include "core/parse_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/limits.h"

namespace stepcast {
namespace {

std::string nested(std::size_t levels, const std::string& open, const std::string& close) {
  std::string out;
  for (std::size_t i = 0; i < levels; ++i) out += open;
  out += "1";
  for (std::size_t i = 0; i < levels; ++i) out += close;
  return out;
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_json(text, "a.json");
  return parsed ? "" : to_string(parsed.error().front());
}

// The deepest document that is read has exactly as many levels as the limit says; one more, or a
// hundred thousand, are refused alike, of lists and of objects.
TEST(ParseJson, RefusesWhatNestsDeeperThanTheLimit) {
  EXPECT_EQ(error_of(nested(kDeepestDocument, "[", "]")), "");
  EXPECT_EQ(error_of(nested(kDeepestDocument, R"({"a":)", "}")), "");
  int refused = 0;
  for (const std::size_t levels : {kDeepestDocument + 1, std::size_t{100'000}}) {
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair(R"({"a":)", "}")}) {
      const std::string error = error_of(nested(levels, open, close));
      EXPECT_TRUE(error.starts_with("a.json: nests deeper than 64 levels")) << error;
      ++refused;
    }
  }
  EXPECT_EQ(refused, 4);
  EXPECT_TRUE(error_of(std::string(100'000, '[')).starts_with("a.json: nests deeper"));
  EXPECT_FALSE(parse_ordered_json(std::string(100'000, '['), "a.json"));
}

TEST(ParseJson, SaysWhichNumberIsTooLargeAndWhere) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"b\": -1e999}"),
            "a.json: not valid JSON: line 2, column 7: the number -1e999 is too large");
}

TEST(ParseJson, SkipsCommentsAndFindsSecondKeysWhenAsked) {
  const std::string comments = "// one\n{\"a\": /* two */ 1}";
  EXPECT_FALSE(parse_json(comments, "a.json"));
  EXPECT_EQ(parse_json(comments, "a.json", {.comments = true}).value(), nlohmann::json({{"a", 1}}));
  const std::string twice = R"({"a": {"b": 1, "b": 2}})";
  EXPECT_TRUE(parse_json(twice, "a.json"));
  const auto refused = parse_json(twice, "a.json", {.unique_keys = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error().front()),
            "a.json: b: the key 'b' stands twice (keep one of them)");
}

TEST(ParseJson, DropsTheObjectsThatTheCallerHasTaken) {
  int taken = 0;
  const auto take = [&](const nlohmann::json& object) {
    if (!object.contains("ph")) return true;
    ++taken;
    return false;
  };
  const auto rest = parse_json(R"({"events": [{"ph": 1}, {"ph": 2}], "device": {"name": "a"}})",
                               "a.json", {.keep_object = take});
  ASSERT_TRUE(rest);
  EXPECT_EQ(taken, 2);
  EXPECT_TRUE((*rest)["events"].empty());
  EXPECT_EQ((*rest)["device"]["name"], "a");
}

}  // namespace
}  // namespace stepcast
