// SPDX-License-Identifier: Apache-2.0
#include "core/declared_keys.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/row_types.h"

namespace stepcast {
namespace {

enum class Colour { kRed, kGreen };
constexpr const char* name_of(Colour colour) { return colour == Colour::kRed ? "red" : "green"; }

struct Part {
  std::int64_t count = 1;
  std::optional<double> share;
  static Rows fields() {
    static constexpr Row all[] = {row<&Part::count>("count").within(1, 8).says("how many"),
                                  row<&Part::share>("share").within(0, 1)};
    return rows_of<Part>(all);
  }
};
struct Corner {
  static constexpr const char* kAccepts = "[x, y]";
};
[[maybe_unused]] bool read_json(const JsonValue&, Corner&) { return true; }
[[maybe_unused]] Json written_json(const Corner&) { return {}; }

struct Whole {
  std::string name;
  Colour colour = Colour::kGreen;
  bool broad = false;
  double width = 2.5;
  Seconds pause;
  std::vector<Part> parts;
  std::map<std::string, Part> by_name;
  std::optional<Part> spare;
  std::vector<std::string> tags;
  std::map<std::string, double> figures;
  Corner corner;
  Part near;
  std::int64_t computed = 0;

  static Rows fields() {
    using F = Whole;
    static constexpr Row all[] = {
        row<&F::name>("name").required().says("its name"),
        row<&F::colour>("colour"),
        row<&F::broad>("broad").named(words<"narrow", "broad">),
        row<&F::width>("width"),
        row<&F::pause>("pause").with_unit(),
        row<&F::parts>("parts").says("all of them"),
        row<&F::by_name>("by_name"),
        row<&F::spare>("spare"),
        row<&F::tags>("tags"),
        row<&F::figures>("figures").named(words<"a", "b">),
        row<&F::corner>("corner"),
        beside<&F::near>(),
        row<&F::computed>("computed").where<F>([](const F&) { return false; }),
        remark("notes")};
    return rows_of<F>(all);
  }
};

TEST(DeclaredKeys, SayWhatTheRowsDeclare) {
  const std::vector<std::vector<std::string>> expected{
      {"w.name", "text", "required", "its name"},
      {"w.colour", "red or green", "green", ""},
      {"w.broad", "narrow or broad", "narrow", ""},
      {"w.width", "0 or more", "2.5", ""},
      {"w.pause", "a time with its unit", "", ""},
      {"w.parts", "a list of objects", "", "all of them"},
      {"w.parts.count", "1 to 8", "1", "how many"},
      {"w.parts.share", "0 to 1", "", ""},
      {"w.by_name.count", "1 to 8", "1", "how many"},  // only a row with words stands for an object
      {"w.by_name.share", "0 to 1", "", ""},
      {"w.spare.count", "1 to 8", "1", "how many"},
      {"w.spare.share", "0 to 1", "", ""},
      {"w.tags", "a list of texts", "", ""},
      {"w.figures", "numbers by name: a or b", "", ""},
      {"w.corner", "[x, y]", "", ""},
      {"w.count", "1 to 8", "1", "how many"},  // its keys stand beside the others
      {"w.share", "0 to 1", "", ""},
      {"w.notes", "anything", "", "for people"}};
  std::vector<std::vector<std::string>> found;
  for (const DeclaredKey& key : declared_keys<Whole>("w.")) {
    found.push_back({key.path, key.accepts, key.usual, key.words});
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace stepcast
