// SPDX-License-Identifier: Apache-2.0
#include "core/text/escape.h"

#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <vector>

#include "core/json_tree.h"
#include "core/text/characters.h"

namespace stepcast {
namespace {

// Pieces that end, open or hide something in one of the formats, and bytes that are not UTF-8.
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all = {
      "a",      "1",     " ",        "\n",       "\t",     "\r",        "\x1b[31m", "\x07",
      "\x7f",   "\xff",  "\xc0\x80", "\xe2\x80", "\u0085", "\u202e",    "\u2028",   "\ufeff",
      "\ufffe", "=",     "+",        "-",        "@",      "\"",        "'",        "\\",
      "<b>",    "&amp;", "|",        "`",        "*",      "_",         "[",        "$",
      "::",     "##[",   "%",        ",",        "\u00e9", "\U0001f600"};
  return all;
}

std::string hostile(std::mt19937& random) {
  std::string out;
  const std::size_t count = random() % 8;
  for (std::size_t i = 0; i < count; ++i) out += pieces()[random() % pieces().size()];
  return out;
}

// Each seeded string once; how many, so that no test passes on none.
template <class Test>
void for_hostile_strings(Test test) {
  constexpr int kStrings = 3000;
  std::mt19937 random(35);
  int done = 0;
  for (int i = 0; i < kStrings; ++i, ++done) test(hostile(random));
  EXPECT_EQ(done, kStrings);
}

bool all_shown(std::string_view text, std::string_view but) {
  bool out = true;
  for_each_character(text, [&](const Character& next) {
    out = out && (next.kind == CharacterKind::kShown || but.find(next.bytes) != but.npos);
  });
  return out;
}

TEST(Characters, AreShownControlsHiddenOrNone) {
  const auto kind = [](std::string_view text) { return first_character(text).kind; };
  for (const char* text : {"a", "\u00e9", "\u200d", "\U0001f600", "\ufffd"}) {
    EXPECT_EQ(kind(text), CharacterKind::kShown) << text;
  }
  for (const char* text : {"\x01", "\r", "\x1b", "\x7f", "\u0080", "\u009f", "\u2028", "\u2029"}) {
    EXPECT_EQ(kind(text), CharacterKind::kControl);
  }
  for (const char* text : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069",
                           "\ufeff", "\U000e0041"}) {
    EXPECT_EQ(kind(text), CharacterKind::kHidden);
  }
  // Truncated, overlong, a surrogate, beyond the last code point, and two that are no characters.
  for (const char* text : {"\xff", "\x80", "\xe2\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\ufffe", "\ufdd0"}) {
    EXPECT_EQ(kind(text), CharacterKind::kInvalid);
  }
  EXPECT_EQ(first_character("\xe2\x80z").bytes, "\xe2");  // one byte at a time
  EXPECT_EQ(first_character("\u202ez").bytes, "\u202e");
}

TEST(Characters, ChangeTheirKindAtTheEdgesOfTheirRanges) {
  // The code point before each range and after it is shown, both ends are not.
  struct Edge {
    const char* before;
    const char* first;
    const char* last;
    const char* after;
  };
  const std::vector<Edge> edges = {{"~", "\x7f", "\u009f", "\u00a0"},
                                   {"\u2027", "\u2028", "\u202e", "\u202f"},
                                   {"\u200d", "\u200e", "\u200f", "\u2010"},
                                   {"\u2065", "\u2066", "\u2069", "\u206a"},
                                   {"\u061b", "\u061c", "\u061c", "\u061d"},
                                   {"\ufdcf", "\ufdd0", "\ufdef", "\ufdf0"},
                                   {"\ufff8", "\ufff9", "\ufffb", "\ufffc"},
                                   {"\ufffd", "\ufffe", "\uffff", "\U00010000"},
                                   {"\U0001fffd", "\U0001fffe", "\U0001ffff", "\U00020000"},
                                   {"\U000dfffd", "\U000e0000", "\U000e007f", "\U000e0080"}};
  for (const Edge& edge : edges) {
    EXPECT_EQ(first_character(edge.before).kind, CharacterKind::kShown) << edge.before;
    EXPECT_NE(first_character(edge.first).kind, CharacterKind::kShown) << edge.before;
    EXPECT_NE(first_character(edge.last).kind, CharacterKind::kShown) << edge.after;
    EXPECT_EQ(first_character(edge.after).kind, CharacterKind::kShown) << edge.after;
  }
  EXPECT_EQ(first_character(" ").kind, CharacterKind::kShown);
  EXPECT_EQ(first_character("\x1f").kind, CharacterKind::kControl);
}

TEST(Characters, AreUtf8ByItsTable) {
  // Unicode, table 3-7: the shortest and the longest form of each length, and one beyond each.
  for (const char* text :
       {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
    EXPECT_EQ(with_utf8_alone(text), text);
    EXPECT_EQ(first_character(text).bytes, text);
  }
  for (const char* text :
       {"\x80", "\xbf", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0", "\xe0\x9f\xbf", "\xe0\xa0",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(is_utf8(text));
    EXPECT_EQ(first_character(text).bytes.size(), 1u);
  }
  EXPECT_EQ(first_character("\U0010ffff").value, 0x10FFFFu);
  EXPECT_EQ(first_character("\u00e9").value, 0xE9u);
  EXPECT_EQ(with_utf8_alone("a\xff\u202eb"), "a\ufffd\u202eb");
  EXPECT_EQ(shown_characters("a\xff\u202e\n\t"), "a\ufffd\ufffd\n\t");
}

TEST(Escape, WrittenTextIsMadeOfLiteralsAndEscapers) {
  static_assert(!std::is_convertible_v<std::string, Written>);
  static_assert(!std::is_constructible_v<Written, std::string>);
  static_assert(!std::is_constructible_v<Written, const char*>);
  static_assert(!std::is_constructible_v<Written, char(&)[8]>);
  static_assert(std::is_constructible_v<Written, const char(&)[8]>);
  EXPECT_EQ(Written("## ") + json_file(SortedJson("<\n>")), "## \"<\\n>\"\n");
}

TEST(Escape, TerminalShowsWhatItMayNotPrint) {
  EXPECT_EQ(terminal_line("a\x1b[1m\n\tb\r\u202e\xff"), "a\\x1b[1m\\n\\tb\\r\\u202e\\xff");
  EXPECT_EQ(terminal_line("\U000e0041"), "\\U000e0041");
  EXPECT_EQ(terminal_line("héllo · ─"), "héllo · ─");
  // Neither form of GitHub's commands reaches its runner.
  EXPECT_EQ(terminal_line("  ::error::a"), "  \\::error::a");
  EXPECT_EQ(terminal_line("a ##[error]b ##[c]"), "a ##\\[error]b ##\\[c]");
  EXPECT_EQ(terminal_line("std::string"), "std::string");
  EXPECT_EQ(terminal_lines("a\n\x1b\n\nb"), "a\n\\x1b\n\nb\n");
  for_hostile_strings(
      [](const std::string& text) { EXPECT_TRUE(all_shown(terminal_line(text), "")) << text; });
}

TEST(Escape, MarkdownIsWordsAlone) {
  EXPECT_EQ(markdown_words("<img> *a* `b` [c](d) a_b _c_ x|y $z$ \\"),
            "&lt;img> \\*a\\* \\`b\\` \\[c\\](d) a_b \\_c\\_ x\\|y \\$z\\$ \\\\");
  EXPECT_EQ(markdown_words("R&D &amp; &#65;"), "R\\&D \\&amp; \\&#65;");
  EXPECT_EQ(markdown_words("a & b &"), "a & b &");  // no entity begins there
  EXPECT_EQ(markdown_words("~a~ a~b _ a_"), "\\~a\\~ a~b \\_ a\\_");
  EXPECT_EQ(markdown_words("http://a.b www.c.d a.www"), "http\\://a.b www\\.c.d a.www");
  EXPECT_EQ(markdown_words("a\tb\nc"), "a b c");
  EXPECT_EQ(markdown_line(""), "");
  EXPECT_EQ(markdown_line("12) a"), "12\\) a");
  EXPECT_EQ(markdown_line("12."), "12\\.");
  EXPECT_EQ(markdown_line("12 a"), "12 a");
  EXPECT_EQ(markdown_line("12"), "12");
  EXPECT_EQ(markdown_line("-"), "\\-");
  EXPECT_EQ(markdown_line("+3"), "+3");
  EXPECT_EQ(markdown_line("> a"), "\\> a");
  EXPECT_EQ(markdown_line("=="), "\\==");
  EXPECT_EQ(markdown_line("::a"), "\\::a");
  EXPECT_EQ(markdown_code_block("a `b`\n"), "```text\na `b`\n```\n");
  EXPECT_EQ(markdown_line("# a"), "\\# a");
  EXPECT_EQ(markdown_line("    code"), "code");
  EXPECT_EQ(markdown_line("1. a"), "1\\. a");
  EXPECT_EQ(markdown_line("1.5 s"), "1.5 s");
  EXPECT_EQ(markdown_line("- a"), "\\- a");
  EXPECT_EQ(markdown_line("-8.3 % of it"), "-8.3 % of it");
  EXPECT_EQ(markdown_code_block("a ````b\n"), "`````text\na ````b\n`````\n");
  for_hostile_strings(
      [](const std::string& text) { EXPECT_TRUE(all_shown(markdown_line(text), "")) << text; });
}

TEST(Escape, CsvKeepsNumbersAndStopsFormulas) {
  EXPECT_EQ(csv_cell("=1+1"), "'=1+1");
  EXPECT_EQ(csv_cell("-2+3+cmd|' /C calc'!A0"), "'-2+3+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_cell("@SUM(A1,B1)"), "\"'@SUM(A1,B1)\"");
  EXPECT_EQ(csv_cell("\t=1"), "'\t=1");
  for (const char* number :
       {"-3", "+0.5", "-1e-05", "-8.3 %", "-8.3%", "-.5", "-5.", "-1E5", "+1e+5", "1", "-"}) {
    EXPECT_EQ(csv_cell(number), number);
  }
  for (const char* text : {"-", "=", "-e5", "+1.2.3", "-1e", "+-1"}) {
    EXPECT_EQ(csv_cell(text)[0] == '\'', std::string(text).size() > 1) << text;
  }
  EXPECT_EQ(csv_cell("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
  EXPECT_EQ(csv_cell("::error::a"), "\"::error::a\"");
  for_hostile_strings(
      [](const std::string& text) { EXPECT_TRUE(all_shown(csv_cell(text), "\n\t")) << text; });
}

TEST(Escape, XmlHoldsNoCharacterThatXmlForbids) {
  EXPECT_EQ(xml_content("<a b=\"c\">&'\x01\ufffe\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;"
            "\ufffd\ufffd\n");
  EXPECT_EQ(xml_attribute("a\n\tb"), "a&#10;&#9;b");
  EXPECT_EQ(dot_label("a\\N\"\nb"), "a\\\\N\"\\nb");
}

TEST(Escape, GithubReadsOneCommand) {
  EXPECT_EQ(github_command("error", "a:b,c%", "50 %\nd:e\x1b"),
            "::error title=a%3Ab%2Cc%25::50 %25%0Ad:e\ufffd\n");
}

TEST(Escape, YamlTakesOnlyWordsWithoutQuotes) {
  for (const char* text : {"pytorch", "v1.2/a-b_c"}) EXPECT_TRUE(is_plain_yaml(text)) << text;
  for (const char* text : {"", "true", "No", "NULL", "y", "123", "1e3", "~", "-a", "a b",
                           "a:", "a#b", "\u00e9", "a\u2028"}) {
    EXPECT_FALSE(is_plain_yaml(text)) << text;
  }
}

TEST(Escape, ShellWordsAreQuotedAsBashReadsThem) {
  EXPECT_EQ(shell_word("/a/b-c_1:2=3,4@5%+"), "/a/b-c_1:2=3,4@5%+");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's $x"), "'it'\\''s $x'");
  EXPECT_EQ(shell_word("a\x1b'\\\u202e"), "$'a\\x1b\\'\\\\\\xe2\\x80\\xae'");
  EXPECT_EQ(in_comment("a\nb\u2028c\x1b"), "a b c ");
  for_hostile_strings([](const std::string& text) {
    EXPECT_TRUE(all_shown(shell_word(text), "")) << text;
    EXPECT_TRUE(all_shown(in_comment(text), "")) << text;
  });
}

TEST(Escape, JsonIsReadBackWholeAndPrintsNoControls) {
  EXPECT_EQ(json_literal("a\"b\n"), R"("a\"b\n")");
  EXPECT_EQ(json_literal("\xff"), "\"\ufffd\"");
  EXPECT_EQ(json_literal("a\x7f"), R"("a\u007f")");  // all of it ASCII
  EXPECT_EQ(json_file(Json{{"b", 1}, {"a", 2}}, 1), "{\n \"b\": 1,\n \"a\": 2\n}\n");
  EXPECT_EQ(json_literal("\u202e\u009b\u007f\U000e0041"), R"("\u202e\u009b\u007f\udb40\udc41")");
  EXPECT_EQ(json_in_script("\"</script>&\""), "\"\\u003c/script\\u003e\\u0026\"");
  EXPECT_EQ(json_literal("##[error]a ##[b]"), R"("##\u005berror]a ##\u005bb]")");
  EXPECT_EQ(toml_escapes("a = \"\u202e\U000e0041\"\n"), "a = \"\\u202e\\U000e0041\"\n");
  std::size_t whole = 0;
  for_hostile_strings([&](const std::string& text) {
    const std::string literal = json_literal(text);
    EXPECT_TRUE(all_shown(literal, "")) << text;
    const auto read = SortedJson::parse(json_in_script(literal)).get<std::string>();
    if (is_utf8(text)) {
      ++whole;
      EXPECT_EQ(read, text);
    } else {
      EXPECT_NE(read.find(kReplacement), read.npos) << text;
    }
  });
  EXPECT_GT(whole, 1000u);
}

}  // namespace
}  // namespace stepcast
