// SPDX-License-Identifier: Apache-2.0
#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/write_rows.h"

#include <gtest/gtest.h>

#include <map>

#include "core/quantity.h"
#include "core/text/escape.h"

namespace stepcast {

enum class Colour { kRed, kGreen };
constexpr const char* name_of(Colour colour) { return colour == Colour::kRed ? "red" : "green"; }

struct Part {
  double share = 0;
  static Rows fields() {
    static constexpr Row all[] = {row<&Part::share>("share").required().within(0, 1)};
    return rows_of<Part>(all);
  }
};

struct Ends {
  double low = 0, high = 0;
  static Rows fields() {
    static constexpr Row all[] = {row<&Ends::low>("low_s").required(),
                                  row<&Ends::high>("high_s").required()};
    return rows_of<Ends>(all);
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

  static Rows fields() {
    using F = Whole;
    static constexpr Row all[] = {
        row<&F::name>("name").required(),
        row<&F::is_open>("is_open"),
        row<&F::is_wide>("width").named(words<"narrow", "wide">),
        row<&F::colour>("colour"),
        row<&F::count>("count").unless_usual().where<F>([](const F& f) { return !f.is_open; }),
        row<&F::time>("time_s"),
        row<&F::part>("part"),
        row<&F::parts>("parts"),
        beside<&F::ends>(),
        row<&F::by_colour>("by_colour").named(enum_names<Colour>),
        row<&F::figures>("figures").named(words<"b", "a">).within(-1, 1),
        row<&F::size>("size").with_unit().positive(),
        remark("notes")};
    return rows_of<F>(all);
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

TEST(Rows, WriteWhatTheyRead) {
  const std::string text =
      R"({"name":"w","is_open":false,"width":"wide","colour":"green","count":3,"time_s":0.5,)"
      R"("part":{"share":0.25},"parts":[{"share":1.0}],"low_s":1.0,"high_s":2.0,)"
      R"("by_colour":{"red":4,"green":5},"figures":{"b":-1.0,"a":0.5},"size":"12 B"})";
  EXPECT_EQ(json_text(json_of(read(text))), text);
}

TEST(Rows, KeepWhatIsNotThereAndLeaveOutWhatIsUsual) {
  const Whole read_one = read(R"({"name": "w"})");
  EXPECT_EQ(read_one.count, 7);
  EXPECT_FALSE(read_one.part);
  EXPECT_FALSE(read_one.ends);
  EXPECT_EQ(json_text(json_of(read_one)),
            R"({"name":"w","is_open":false,"width":"narrow","colour":"red","time_s":0.0,)"
            R"("parts":[],"by_colour":{"red":0,"green":0},"figures":{}})");
}

TEST(Rows, NameTheKeyOfEachMistake) {
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

TEST(Rows, KnowAKeyOnlyWhereItBelongs) {
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
