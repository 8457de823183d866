// SPDX-License-Identifier: Apache-2.0
#include "core/json_fields.h"

#include <gtest/gtest.h>

#include <map>

#include "core/quantity.h"
#include "core/text/escape.h"

namespace stepcast {

enum class Colour { kRed, kGreen };
constexpr const char* name_of(Colour colour) { return colour == Colour::kRed ? "red" : "green"; }

struct Part {
  double share = 0;
  static auto fields() {
    return std::tuple{json_field("share", &Part::share).required().within(0, 1)};
  }
};

struct Ends {
  double low = 0, high = 0;
  static auto fields() {
    return std::tuple{json_field("low_s", &Ends::low).required(),
                      json_field("high_s", &Ends::high).required()};
  }
};

struct Whole {
  std::string name;
  bool is_open = false;
  bool is_wide = false;
  Colour colour = Colour::kRed;
  std::int64_t count = 7;
  Seconds time = Seconds(0);
  std::optional<Part> part;
  std::vector<Part> parts;
  std::optional<Ends> ends;
  std::array<std::int64_t, 2> by_colour{};
  std::map<std::string, double> figures;
  std::optional<Bytes> size;

  void check(const JsonValue& value) const {
    if (!is_open && count == 0) value.fail(ErrorCode::kIllegal, "is closed and empty");
  }

  static auto fields() {
    using F = Whole;
    return std::tuple{
        json_field("name", &F::name).required(),
        json_field("is_open", &F::is_open),
        json_field("width", &F::is_wide).named(words<"narrow", "wide">),
        json_field("colour", &F::colour),
        json_field("count", &F::count).unless_usual().where([](const F& f) { return !f.is_open; }),
        json_field("time_s", &F::time),
        json_field("part", &F::part),
        json_field("parts", &F::parts),
        json_field(nullptr, &F::ends),
        json_field("by_colour", &F::by_colour).named(enum_names<Colour>),
        json_field("figures", &F::figures).named(words<"b", "a">).within(-1, 1),
        json_field("size", &F::size).with_unit().positive(),
        JsonRemark{"notes"}};
  }
};

namespace {

Whole read(const std::string& text, std::string* errors = nullptr) {
  const auto document = JsonDocument::parse(text, "f");
  EXPECT_TRUE(document) << text;
  Whole out = read_object<Whole>((*document)->root());
  const std::string found = to_string((*document)->errors());
  EXPECT_TRUE(errors != nullptr || found.empty()) << found;
  if (errors != nullptr) *errors = found;
  return out;
}

TEST(JsonFields, WriteWhatTheyRead) {
  const std::string text =
      R"({"name":"w","is_open":false,"width":"wide","colour":"green","count":3,"time_s":0.5,)"
      R"("part":{"share":0.25},"parts":[{"share":1.0}],"low_s":1.0,"high_s":2.0,)"
      R"("by_colour":{"red":4,"green":5},"figures":{"b":-1.0,"a":0.5},"size":"12 B"})";
  EXPECT_EQ(json_text(json_of(read(text))), text);
}

TEST(JsonFields, KeepWhatIsNotThereAndLeaveOutWhatIsUsual) {
  const Whole read_one = read(R"({"name": "w"})");
  EXPECT_EQ(read_one.count, 7);
  EXPECT_FALSE(read_one.part);
  EXPECT_FALSE(read_one.ends);
  EXPECT_EQ(json_text(json_of(read_one)),
            R"({"name":"w","is_open":false,"width":"narrow","colour":"red","time_s":0.0,)"
            R"("parts":[],"by_colour":{"red":0,"green":0},"figures":{}})");
}

TEST(JsonFields, NameTheKeyOfEachMistake) {
  std::string errors;
  read(R"({"colour": "gren", "part": {"share": 2}, "parts": [{}], "low_s": 1, "coun": 1,
           "figures": {"c": 1}, "width": "broad", "size": "0 B", "notes": "for people"})",
       &errors);
  for (const char* part :
       {"f: name: is required and missing", "f: colour: 'gren' is not accepted",
        "f: part.share: 2 is out of range", "f: parts[0].share: is required and missing",
        "f: high_s: is required and missing", "f: coun: is not a known key",
        "f: figures.c: is not a known key", "f: width: 'broad' is not accepted",
        "f: size: 0 is out of range"}) {
    EXPECT_NE(errors.find(part), std::string::npos) << part << " is not in\n" << errors;
  }
}

TEST(JsonFields, KnowAKeyOnlyWhereItBelongs) {
  std::string errors;
  read(R"({"name": "w", "is_open": true, "count": 1})", &errors);
  EXPECT_NE(errors.find("count: is not a known key"), std::string::npos) << errors;
  read(R"({"name": "w", "count": 0})", &errors);
  EXPECT_NE(errors.find("is closed and empty"), std::string::npos) << errors;
}

TEST(EnumNames, AreThoseOfTheDeclaredValues) {
  EXPECT_EQ(enum_names<Colour>(), (std::vector<std::string>{"red", "green"}));
}

}  // namespace
}  // namespace stepcast
