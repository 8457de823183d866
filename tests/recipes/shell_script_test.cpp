// SPDX-License-Identifier: Apache-2.0
#include "recipes/shell_script.h"

#include <gtest/gtest.h>

#include "core/text/escape.h"

namespace stepcast {
namespace {

using Words = std::vector<std::string>;

Words last_command(const std::string& text, const std::map<std::string, std::string>& known = {}) {
  const ShellScript script = read_shell(text, known);
  return script.commands.empty() ? Words{} : script.commands.back();
}

TEST(ShellScript, QuotesContinuationsAndCommentsAsAShellReadsThem) {
  EXPECT_EQ(last_command("run --a 'b c' \"d e\" f\\ g \\\n  --h # --not this\n"),
            (Words{"run", "--a", "b c", "d e", "f g", "--h"}));
  EXPECT_EQ(last_command("run a'b'\"c\"d ''"), (Words{"run", "abcd", ""}));
}

TEST(ShellScript, EscapesOfDollarQuotesAreThoseOfBash) {
  EXPECT_EQ(last_command("run $'a\\x1b[31m\\n\\'b\\\\'c"), (Words{"run", "a\x1b[31m\n'b\\c"}));
  // Two digits at most belong to \x, and a quote that is never closed ends with the text.
  EXPECT_EQ(last_command("run $'\\x411' $'\\x"), (Words{"run", "A1", "x"}));
}

TEST(ShellScript, VariablesAreExpandedAndSplitUnlessQuoted) {
  EXPECT_EQ(last_command("TP=8\nARGS=\"--tp $TP --x\"\nrun $ARGS \"$ARGS\""),
            (Words{"run", "--tp", "8", "--x", "--tp 8 --x"}));
  EXPECT_EQ(last_command("A=1\nA+=2\nexport B=${A}3\nrun $B '$B'"), (Words{"run", "123", "$B"}));
}

TEST(ShellScript, ArraysOverSeveralLines) {
  EXPECT_EQ(last_command("N=4\nARGS=(\n  --layers $N # of them\n  --text \"a b\"\n)\n"
                         "ARGS+=(--more)\nrun ${ARGS[@]} \"${ARGS[@]}\""),
            (Words{"run", "--layers", "4", "--text", "a", "b", "--more", "--layers", "4", "--text",
                   "a b", "--more"}));
  EXPECT_EQ(last_command("run x \"$@\""), (Words{"run", "x"}));  // started without arguments
  EXPECT_EQ(last_command("A=()\nrun \"${A[@]}\" x"), (Words{"run", "x"}));
}

TEST(ShellScript, DefaultsHoldWhereTheVariableIsUnset) {
  EXPECT_EQ(last_command("run ${N:-8} ${M:-x}", {{"M", "3"}}), (Words{"run", "8", "3"}));
  EXPECT_EQ(last_command("N=\"${N:-$((2*4))}\"\nrun $N"), (Words{"run", "8"}));
}

TEST(ShellScript, ArithmeticOfWholeNumbers) {
  EXPECT_EQ(last_command("G=8\nN=4\nW=$(($G*$N))\nrun $W $((W/2+1)) $(( (G+N)*2 )) $((7%4))"),
            (Words{"run", "32", "17", "24", "3"}));
}

TEST(ShellScript, WhatIsNotKnownStaysVisible) {
  EXPECT_EQ(last_command("run $1 ${MISSING} $(hostname) $((MISSING+1))"),
            (Words{"run", "${1}", "${MISSING}", "$(hostname)", "$((MISSING+1))"}));
}

TEST(ShellScript, RedirectionsHereDocumentsAndPipesAreNoWords) {
  EXPECT_EQ(last_command("cat <<EOF > out.txt\nrun --never\nEOF\nrun --a 2>&1 >log\n"),
            (Words{"run", "--a"}));
  EXPECT_EQ(last_command("run --a 1 2>&1 | tee log").front(), "tee");
}

TEST(ShellScript, ACommandInOneWordIsReadToo) {
  const ShellScript script = read_shell("srun bash -c \"run --a 1 --b\"", {});
  EXPECT_EQ(script.commands.back(), (Words{"run", "--a", "1", "--b"}));
}

TEST(ShellScript, ConditionsOfKnownVariablesAreDecided) {
  const std::string text = "if [ $X = 1 ]; then\n  A=1\nelse\n  A=2\nfi\nrun $A";
  EXPECT_EQ(last_command(text, {{"X", "1"}}), (Words{"run", "1"}));
  EXPECT_EQ(last_command(text, {{"X", "3"}}), (Words{"run", "2"}));
  EXPECT_TRUE(read_shell(text, {{"X", "1"}}).undecided.empty());
}

TEST(ShellScript, OthersAreNamedAndAllTheirBranchesRun) {
  const std::string text = "A=0\nif [ $X = 1 ] ; then\n  A=1\nelse\n  A=2\nfi\nrun --a $A --b";
  const ShellScript script = read_shell(text, {});
  EXPECT_EQ(script.undecided, (Words{"[ $X = 1 ]"}));
  EXPECT_EQ(script.commands.back(), (Words{"run", "--a", "2", "--b"}));
  const ShellScript without = read_shell(text, {}, Undecided::kLeaveOut);
  EXPECT_EQ(without.commands.back(), (Words{"run", "--a", "0", "--b"}));
  EXPECT_EQ(undecided_settings(script.commands.back(), without.commands.back()), (Words{"--a 2"}));
}

TEST(ShellScript, TestsSayWhatBashSays) {
  const auto holds = [](const std::string& test) {
    const ShellScript script = read_shell(test + " && run yes || run no", {{"A", "8"}, {"E", ""}});
    return script.undecided.empty() ? script.commands.back().back() : "undecided";
  };
  for (const char* test :
       {"[[ $A == 8 ]]", "[[ $A == [0-9] && ! $A == 9 ]]", "[ \"$A\" -ge 8 ]", "[[ -z $E ]]",
        "(( A / 2 == 4 && A < 9 ))", "[ -n \"$A\" -a \"$A\" != 7 ]", "! false", "[[ ab == a* ]]",
        "[[ ( $A == 1 || $A == 8 ) && $A -lt 9 ]]", "[[ $A == 8 || $X == 1 ]]", "[ $A ]"}) {
    EXPECT_EQ(holds(test), "yes") << test;
  }
  for (const char* test : {"[[ $A == 7 ]]", "[ -n \"$E\" ]", "(( A > 8 ))", "[[ a == [!a] ]]",
                           "[[ $X == 1 && $A == 1 ]]", "[ \"$E\" ]", "false"}) {
    EXPECT_EQ(holds(test), "no") << test;
  }
  for (const char* test : {"[[ $X == 1 ]]", "[ -f file ]", "[[ $A =~ ^8$ ]]", "[[ $(date) == x ]]",
                           "(( X > 1 ))", "[[ $A == 8 && $X == 1 ]]"}) {
    EXPECT_EQ(holds(test), "undecided") << test;
  }
}

TEST(ShellScript, FunctionsRunWhereTheyAreCalled) {
  EXPECT_EQ(last_command("f() { run $1 ${2:-x} $#; }\nf a\n"), (Words{"run", "a", "x", "1"}));
  EXPECT_EQ(last_command("function f { A=$1; }\nA=1\nf 2\nrun $A ${1}"),
            (Words{"run", "2", "${1}"}));
  // A function that nothing calls runs at the end, and one that a dead branch calls never.
  EXPECT_EQ(last_command("A=1\nf() {\n  run $A\n}\nA=2"), (Words{"run", "2"}));
  EXPECT_EQ(last_command("f() { run f; }\nrun x\nif false; then f; fi"), (Words{"run", "x"}));
  read_shell("f() { f; f; }\nf", {});
}

TEST(ShellScript, LoopsOverKnownWordsRunForEach) {
  EXPECT_EQ(last_command("for A in x 'y z'; do B=\"$B<$A>\"; done\nrun $B", {{"B", ""}}),
            (Words{"run", "<x><y", "z>"}));
  EXPECT_EQ(read_shell("for A in $(ls); do run $A; done", {}).undecided.size(), 1u);
  EXPECT_EQ(last_command("A=1\nwhile [ $# -gt 0 ]; do A=$1; shift; done\nrun $A"),
            (Words{"run", "1"}));
}

TEST(ShellScript, EndsOnAnyText) {
  for (const char* text : {"if",          "if x; then", "case",     "case $x in",
                           "case a in (", "for",        "for x in", "for x in a b; do",
                           "while",       "f() {",      "function", "[[",
                           "[[ a =~",     "((",         "{ { {",    "}}}",
                           ")))",         ";;",         "&&",       "||",
                           "! !",         "esac",       "fi",       "case a in b",
                           "'",           "\"",         "$(",       "$((",
                           "${",          "A=(",        "a\\",      "`",
                           "<<",          "((((",       "$",        "${A:-${B:-${C",
                           "\"${A[@]",    "A=('",       "cat <<E\n"}) {
    read_shell(text, {});
  }
}

// Each line doubles what A holds: 2^38 characters, were nothing in the way.
TEST(ShellScript, VariablesThatHoldEachOtherEndAtALimit) {
  for (const char* twice : {"A=$A$A\n", "A=\"${A}${A}\"\n", "A+=$A\n", "A=${B:-$A$A}\n",
                            "A=(\"${A[@]}\" \"${A[@]}\")\n"}) {
    std::string text = "A=xxxxxxxx\n";
    for (int line = 0; line < 35; ++line) text += twice;
    const ShellScript script = read_shell(text + "run --a $A\n", {});
    EXPECT_TRUE(script.too_large) << twice;
  }
  EXPECT_FALSE(read_shell("A=8\nA=$A$A\nrun $A", {}).too_large);
  // Loops in loops, and functions that call themselves twice.
  std::string loops, ends;
  for (int depth = 0; depth < 20; ++depth) {
    loops += "for i in 1 2 3 4 5 6 7 8 9; do ";
    ends += "done; ";
  }
  EXPECT_TRUE(read_shell(loops + "run\n" + ends, {}).too_large);
  EXPECT_TRUE(read_shell("f() { f; f; : " + std::string(2000, 'x') + "; }\nf", {}).too_large);
}

TEST(ShellScript, QuotedWordsReadBack) {
  for (const std::string word : {"plain", "two words", "it's", "$HOME", "", "a\"b", "([0]*3+[1]*2)",
                                 "E|t*2,L", "a\\b", "#x", "`ls`"}) {
    EXPECT_EQ(last_command("run " + shell_word(word)), (Words{"run", word})) << word;
  }
}

}  // namespace
}  // namespace stepcast
