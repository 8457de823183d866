// SPDX-License-Identifier: Apache-2.0
#include "core/parse_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/text/escape.h"
#include "core/work_limits.h"

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

// The library's parser takes a NUL for the end: the second object would be lost without a word.
TEST(ParseJson, RefusesWhatStandsBehindANul) {
  const std::string nul(1, '\0'), first = "{\"a\": 1}\n", second = "{\"a\": 2}";
  const std::string place = "a.json: not valid JSON: line 2, column 1: a NUL";
  EXPECT_TRUE(error_of(first + nul + second).starts_with(place));
  EXPECT_TRUE(error_of(first + nul).starts_with(place));
  EXPECT_TRUE(error_of(nul + first).starts_with("a.json: not valid JSON: line 1, column 1"));
  EXPECT_FALSE(parse_ordered_json("1" + nul + " 2", "a.json"));
}

// Two bytes of text make a value of many: 64 MB of them would take three gigabytes.
TEST(ParseJson, HoldsNoMoreValuesThanTheLimit) {
  const auto list = [](std::size_t zeros) {
    std::string out = "[0";
    for (std::size_t i = 1; i < zeros; ++i) out += ",0";
    return out + "]";
  };
  EXPECT_EQ(error_of(list(kMostJsonValues - 1)), "");
  EXPECT_TRUE(error_of(list(kMostJsonValues)).starts_with("a.json: holds more than 4194304"));
  std::string lists = "[[]";
  for (std::size_t i = 1; i < kMostJsonValues; ++i) lists += ",[]";
  EXPECT_TRUE(error_of(lists + "]").starts_with("a.json: holds more than"));
}

TEST(ParseJson, EndsWhereItsTimeIsOver) {
  std::string list = "[0";
  for (int i = 0; i < 10'000; ++i) list += ",0";
  const std::function<bool()> over = [] { return true; };
  const StopScope scope(over);
  EXPECT_EQ(error_of("[0, 1]"), "");
  EXPECT_THROW(error_of(list + "]"), Stopped);
}

TEST(ParseJson, SaysWhichNumberIsTooLargeAndWhere) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"b\": -1e999}"),
            "a.json: not valid JSON: line 2, column 7: the number -1e999 is too large");
}

TEST(ParseJson, SkipsCommentsAndFindsSecondKeysWhenAsked) {
  const std::string comments = "// one\n{\"a\": /* two */ 1}";
  EXPECT_FALSE(parse_json(comments, "a.json"));
  EXPECT_EQ(parse_json(comments, "a.json", {.comments = true}).value(), SortedJson({{"a", 1}}));
  const std::string twice = R"({"a": {"b": 1, "b": 2}})";
  EXPECT_TRUE(parse_json(twice, "a.json"));
  const auto refused = parse_json(twice, "a.json", {.unique_keys = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error().front()),
            "a.json: b: the key 'b' stands twice (keep one of them)");
}

// The value is written again as it stood there, with the shortest digits of a number.
TEST(ParseJson, ReadsEachKindOfValue) {
  const auto again = [](const std::string& text) {
    const auto parsed = parse_json(text, "");
    return parsed ? json_text(*parsed) : to_string(parsed.error().front());
  };
  EXPECT_EQ(again(R"([1, -2, 0, 0.1, 2.5e-3, 123456789012345678, 18446744073709551615])"),
            "[1,-2,0,0.1,0.0025,123456789012345678,18446744073709551615]");
  EXPECT_EQ(again("[9007199254740993.0, 5e-324, 1.7976931348623157e308, 1e-400]"),
            "[9.007199254740992e+15,5e-324,1.7976931348623157e+308,0.0]");
  EXPECT_EQ(again(R"([[1,2],[],{}, {"z": null, "a": true, "m": false}])"),
            R"([[1,2],[],{},{"a":true,"m":false,"z":null}])");
  EXPECT_EQ(again(R"("\u0041 \n")"), R"("A \n")");
  EXPECT_EQ(again(" null "), "null");
  EXPECT_EQ(again(R"({"b": 1, "a": [1], "b": {"d": 2}})"), R"({"a":[1],"b":{"d":2}})");
  const auto ordered = parse_ordered_json(R"({"b": 1, "a": 2, "b": 3})", "");
  ASSERT_TRUE(ordered);
  EXPECT_EQ(json_text(*ordered), R"({"b":3,"a":2})");
}

TEST(ParseJson, DropsTheObjectsThatTheCallerHasTaken) {
  int taken = 0;
  const auto take = [&](const SortedJson& object) {
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

TEST(JsonTree, BracesArePairsOrAList) {
  EXPECT_EQ(json_text(Json{{"b", 1}, {"a", {2, "x"}}}), R"({"b":1,"a":[2,"x"]})");
  EXPECT_EQ(json_text(Json{{"only", nullptr}}), R"({"only":null})");
  EXPECT_EQ(json_text(Json{{1, 2}, {3, 4}}), "[[1,2],[3,4]]");
  EXPECT_EQ(json_text(Json{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(json_text(Json::array({{"a", 1}})), R"([["a",1]])");
  EXPECT_EQ(json_text(Json::array({"a", 1})), R"(["a",1])");
}

TEST(JsonTree, KeysStandAsAddedOrSorted) {
  Json added = {{"b", 1}};
  added["a"] = true;
  added["b"] = 0.5;
  EXPECT_EQ(json_text(added), R"({"b":0.5,"a":true})");
  const SortedJson sorted(added);
  EXPECT_EQ(json_text(sorted), R"({"a":true,"b":0.5})");
  EXPECT_EQ(json_text(Json(sorted)), R"({"a":true,"b":0.5})");
}

TEST(JsonTree, HoldsNumbersAsTheyWereGiven) {
  const Json out = {{"most", ~std::uint64_t{0}}, {"least", std::int64_t{-5}}, {"half", 0.5}};
  EXPECT_EQ(json_text(out), R"({"most":18446744073709551615,"least":-5,"half":0.5})");
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_EQ(Json(1), Json(std::uint64_t{1}));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_EQ(out["least"].get<int>(), -5);
}

TEST(JsonTree, IsTakenApart) {
  Json tree = {{"layout", {{"tp", 8}, {"name", "x"}}}, {"list", std::vector<int>{1, 2, 3}}};
  EXPECT_EQ(*tree.find_path("layout.tp"), 8);
  EXPECT_EQ(tree.find_path("layout.pp"), nullptr);
  EXPECT_EQ(tree.find_path("list.tp"), nullptr);
  EXPECT_EQ(tree["layout"].value("pp", 4), 4);
  EXPECT_EQ(tree["layout"].value("tp", 4), 8);
  EXPECT_EQ(tree["list"].get<std::vector<int>>(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(tree.find("none"), tree.end());
  EXPECT_EQ(tree.find("list")->size(), 3U);
  tree["layout"].erase("tp");
  tree.update({{"list", "gone"}});
  EXPECT_EQ(json_text(tree), R"({"layout":{"name":"x"},"list":"gone"})");
  EXPECT_EQ(json_text(Json(std::map<std::string, int>{{"a", 1}})), R"({"a":1})");
}

}  // namespace
}  // namespace stepcast
