#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every rule finds an offender in a small made-up tree, and nothing in a clean one."""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

from tidy import CHECKS
from tidy_tree import Tree

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
CLEAN = {
    "CMakeLists.txt": "stepcast_layer(core DEPENDS)\n"
                      "stepcast_layer(sim DEPENDS core)\n"
                      "stepcast_layer(model DEPENDS core)  # comment with model DEPENDS\n"
                      "stepcast_program(cli stepcast DEPENDS model)\n",
    "src/core/length.h": SPDX + "#pragma once\nint length();\n",
    "src/core/length.cpp": SPDX + '#include "core/length.h"\nint length() { return 1; }\n',
    "sim/clock.h": SPDX + '#pragma once\n#include "core/length.h"\n',
    "sim/engine.cpp": SPDX + '#include "sim/clock.h"\n',
    "src/cli/main.cpp": SPDX + '#include <cstdio>\n#include "core/length.h"\n'
                               'int main() { std::printf("%d", length()); }\n',
    "cmake/Web.cmake": "set(STEPCAST_LAYERS_LEFT_OUT\n  model)\n"
                       'set(STEPCAST_FILES_LEFT_OUT\n  "real_[a-z]+")\n',
    "bindings/web/CMakeLists.txt": "set(commands main\n  plan)\n",
    "bindings/web/stand_ins.h": SPDX + "#pragma once\ntemplate <class Range>\n"
                                "constexpr auto sort(Range&& range) { return range; }\n",
    "docs/page.md": "# A page: the `first`\n[itself](#a-page-the-first) [web](https://a.example)\n"
                    "`[not](a-link)`\n",
    "README.md": "[page](docs/page.md#a-page-the-first)\n",
    "suites/good.json": '{"stepcast_suite": 1, "cases": [{"id": "a", "source": "s", '
                        '"scenario": {"x": 1}, "measured": {"mfu": 0.4}}]}',
}
COMPILER = "c++"


def notebook(line, **more):
    cell = {"cell_type": "code", "id": "a", "source": [SPDX, line],
            "outputs": [], "execution_count": None, **more}
    return json.dumps({"cells": [cell]})


def findings(check, changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(CHECKS[check](Tree(folder, COMPILER)))


class Rules(unittest.TestCase):
    def offends(self, check, name, text, words):
        found = findings(check, {name: text})
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith(name + ":"), found)
        self.assertIn(words, found[0])

    def accepts(self, check, name, text):
        self.assertEqual([], findings(check, {name: text}))

    def test_a_clean_tree_has_no_findings(self):
        for check in CHECKS:
            self.assertEqual([], findings(check, {}), check)

    def test_text(self):
        source = "src/core/a.cpp"
        self.offends("text", source, SPDX + "// " + "x" * 98 + "\n", "101 columns")
        self.accepts("text", source, SPDX + "// " + "x" * 97 + "\n")
        self.offends("text", source, SPDX + "int a;\n" * 600, "601 lines")
        self.accepts("text", "tests/core/a_test.cpp", SPDX + "int a;\n" * 799)
        self.offends("text", source, "int a;\n", "SPDX")
        self.offends("text", source, SPDX + "int a; \n", "blanks")
        self.offends("text", source, SPDX + "\tint a;\n", "tab")
        self.offends("text", source, SPDX + "int a;", "newline")
        self.offends("text", "src/core/a.h", SPDX + "int a;\n", "#pragma once")
        self.offends("text", "src/core/a.cuh", SPDX + "int a;\n", "#pragma once")
        self.offends("text", "src/core/a.cu", SPDX + "int a; \n", "blanks")
        self.offends("text", source, SPDX + "using namespace std;\n", "using-directive")
        self.accepts("text", source, SPDX + "// using namespace std;\n")

    def test_long_functions(self):
        body = "  step();\n"
        source = "src/core/a.cpp"
        self.accepts("text", source, SPDX + "void f() {\n" + body * 58 + "}\n")
        self.offends("text", source, SPDX + "void f() {\n" + body * 59 + "}\n", "61 lines")
        self.accepts("text", source, SPDX + "namespace a {\n" + body * 99 + "}  // namespace a\n")

    def test_names(self):
        self.offends("names", "src/core/utils.h", SPDX, "named after")
        self.offends("names", "src/core/CamelCase.cpp", SPDX, "snake_case")
        self.offends("names", "tests/core/length.cpp", "TEST(A, B) {}", "_test.cpp")
        self.offends("names", "src/model/length.h", SPDX, "same name as src/core/length.h")
        self.accepts("names", "src/stepcast/length.h", SPDX)
        self.accepts("names", "tests/core/length.h", SPDX)
        kernels = {f"src/kernels/{backend}/gemm.h": SPDX for backend in ("cpu", "cuda")}
        self.assertEqual([], findings("names", kernels))
        self.assertEqual(2, len(findings("names", {**kernels, "src/cost/gemm.h": SPDX})))

    def test_types_of_one_name(self):
        text = SPDX + "namespace stepcast {{\nstruct {} {{\n}};\n}}  // namespace stepcast\n"
        inner = text.replace("namespace stepcast", "namespace stepcast::html")
        job = {"src/core/a.h": text.format("Job")}
        self.assertEqual(1, len(findings("names", {**job, "src/model/b.h": text.format("Job")})))
        self.assertEqual([], findings("names", {**job, "src/model/b.h": text.format("Jobs")}))
        self.assertEqual([], findings("names", {**job, "src/model/b.h": inner.format("Job")}))

    def test_output(self):
        source = "src/core/a.cpp"
        for code in ('std::cout << 1;', 'printf("a");', 'std::exit(1);', 'exit(1);',
                     'std::getenv("A");', 'fmt::print("a");', 'std::fprintf(stderr, "a");'):
            self.offends("output", source, code, "only programs")
        self.accepts("output", source, '// exit(1)\nauto s = "printf(1)"; on_exit(s); snprintf();')

    def test_escapes(self):
        source = "src/report/a.cpp"
        for code in ('out = value.dump(2);', 'out = value->dump();', 'x = json(a).dump();'):
            self.offends("escapes", source, code, "json_text")
        self.accepts("escapes", "src/core/json.cpp", "value.dump();")
        self.offends("escapes", source, "return Written::escaped(name);", "call its text escaped")
        for text in ('"## " + name', '"\\n### {}"', '"**" + a', '"\\x1b[1m" + a', '"&lt;"',
                     '"::error title=" + a'):
            self.offends("escapes", source, f"out += {text};", "the marks of")
        self.accepts("escapes", source, 'out += heading("a # b", form);')
        self.accepts("escapes", "src/core/text/a.cpp", 'out += "&lt;"; Written::escaped(a.dump());')

    def test_files(self):
        source = "src/core/a.cpp"
        for code in ("std::ifstream file(name);", "const int f = ::open(name, O_RDONLY);",
                     "std::fopen(name, mode);", "fs::rename(a, b);", "if (::write(f, a, n) < 0) {}",
                     "std::basic_ofstream<char> out;"):
            self.offends("files", source, SPDX + code + "\n", "read_text_file")
        self.accepts("files", source, SPDX + "// std::ifstream\nJournal::open(a); Run::read(c);\n")
        self.accepts("files", "src/core/text_file.cpp", SPDX + "const int f = ::open(a, 0);\n")
        self.offends("files", "src/core/text_file.cpp", SPDX, "touches no file any more")

    def test_directions(self):
        self.offends("directions", "src/core/a.cpp", '#include "model/model.h"\n', "must not")
        self.offends("directions", "src/core/a.cu", '#include "model/model.h"\n', "must not")
        self.offends("directions", "sim/a.cpp", '#include "model/model.h"\n', "must not")
        self.offends("directions", "src/model/a.cpp", '#include "length.h"\n', "in no layer")
        self.offends("directions", "src/extra/a.cpp", "\n", "no layer extra")
        self.accepts("directions", "src/cli/a.cpp", '#include "core/length.h"\n')
        layers = CLEAN["CMakeLists.txt"] + "stepcast_layer(kernels DEPENDS core PARTS cpu)\n"
        for name, count in ("src/kernels/kernels.h", 1), ("src/kernels/cpu/a.cpp", 0):
            changes = {"CMakeLists.txt": layers, name: '#include "kernels/cpu/a.h"\n'}
            self.assertEqual(count, len(findings("directions", changes)), name)
        layers = CLEAN["CMakeLists.txt"]
        layers += "stepcast_layer(far DEPENDS core PARTS near LIBRARIES x)\n"
        for text, count in ('"core/length.h"', 0), ('"far/near/a.h"', 0), ('"model/a.h"', 1):
            changes = {"CMakeLists.txt": layers, "src/far/near/a.cpp": f"#include {text}\n"}
            self.assertEqual(count, len(findings("directions", changes)), text)

    def test_third_party(self):
        self.offends("third_party", "src/core/a.h", "#include <nlohmann/json.hpp>\n", ".cpp")
        self.offends("third_party", "src/plan/a.cpp", "#include <nlohmann/json.hpp>\n", "src/core")
        self.accepts("third_party", "src/core/a.cpp", "#include <nlohmann/json.hpp>\n")

    def test_headers(self):
        self.offends("headers", "src/core/a.h", "inline std::string a();\n", "alone")
        self.accepts("headers", "src/core/a.h", "#include <string>\ninline std::string a();\n")

    def test_weight(self):
        table = "tests/tidy/header_units.txt"
        found = findings("weight", {table: "# allowed, header\n1 src/core/length.h\n"})
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith("src/core/length.h:1: 3 translation units"), found)
        self.assertIn("sim/clock.h hands it on to 1", found[0])
        self.accepts("weight", table, "3 src/core/length.h  1 sim/clock.h\n")
        self.accepts("weight", table, "13 src/core/length.h\n")
        self.offends("weight", table, "14 src/core/length.h\n", "lower it")
        self.offends("weight", table, "1 src/core/width.h\n", "there is no")
        declares = {table: "2 src/core/length.h\n", "sim/clock.h": SPDX + "int length();\n"}
        self.assertEqual([], findings("weight", declares))

    def test_links(self):
        self.offends("links", "docs/a.md", "[a](b.md)\n", "does not exist")
        self.offends("links", "docs/a.md", "[a](page.md#second)\n", "no such heading")
        self.offends("links", "docs/a.md", "[a](page . md)\n", "has blanks")
        self.accepts("links", "docs/a.md", "```\n[a](b.md)\n```\n")

    def test_commands(self):
        self.offends("commands", "docs/a.md", "```sh\nscripts/none.sh\n```\n", "no program")
        self.offends("commands", "docs/a.md", "```sh\nctest --preset none\n```\n", "no preset")
        self.offends("commands", "docs/a.md", "```console\n$ stepcast none\n```\n", "no none")
        self.accepts("commands", "docs/a.md", "```sh\nstepcast main\n```\nscripts/none.sh\n")

    def test_data(self):
        self.offends("data", "models/a.json", '{"a": 1, "a": 2}', "twice")
        self.offends("data", "models/a.json", '{"a": NaN}', "not JSON")
        self.offends("data", "models/a.json", '{"a": 1,}', "line 1")
        self.offends("data", "suites/a.json", '{"cases": []}', "stepcast_suite")
        self.offends("data", "suites/a.json", '{"stepcast_suite": 1, "cases": [{"id": "a", '
                     '"scenario": {"x": 1}, "measured": {"mfu": 1}}]}', "no source")

    def test_notebooks(self):
        name = "notebooks/a.ipynb"
        self.accepts("notebooks", name, notebook("x" * 100))
        self.offends("notebooks", name, notebook("x" * 101), "101 columns")
        self.offends("notebooks", name, notebook("x "), "blanks")
        self.offends("notebooks", name, notebook("x", outputs=[{}]), "outputs")
        self.offends("notebooks", name, notebook("x", execution_count=1), "outputs")
        self.offends("notebooks", name, notebook("x", source=["x"]), "SPDX")
        self.offends("notebooks", name, "{", "no notebook")

    def test_literals(self):
        for source, code in (
                ("src/execute/a.cpp", 'if (kind == "copy") run();'),
                ("src/program/a.cpp", 'if (view.starts_with("loss_")) run();'),
                ("src/program/a.cpp", 'if (modules.has("moe")) run();'),
                ("src/memory/a.cpp", 'if (training->adapts("qkv")) run();'),
                ("src/operation/a.cpp", 'if (std::ranges::find(all, "moe") != all.end()) run();'),
                ("src/program/a.cpp", 'return std::count(all.begin(), all.end(), "moe");'),
                ("src/predict/a.cpp", 'if (call.operation.name == "copy") run();'),
                ("src/predict/a.cpp", 'if (std::ranges::find(names, "copy") != end) run();'),
                ("src/cost/a.cpp", 'if (std::string_view(operation.name) != "copy") run();'),
                ("src/plan/a.cpp", 'if ("copy" == buffer_name) run();'),
                ("src/plan/a.cpp", 'if (layout.order.starts_with("tp")) run();'),
                ("calibrate/a.cpp", 'if (table.kernel != "unfused") run();'),
                ("calibrate/a.cpp", 'if (name_of(call) ==\n    "copy") run();'),
                ("calibrate/measure/a.cu", 'if (signature().starts_with("copy")) run();')):
            self.offends("literals", source, SPDX + code + "\n", "what decides is no name")
        for source, code in (
                ("src/report/a.cpp", 'if (operation.name == "copy") run();'),
                ("calibrate/import/a.cpp", 'if (kernel.name == "copy") run();'),
                ("src/plan/a.cpp", 'if (path == "layout.tp") run();'),
                ("src/plan/a.cpp", 'if (stated.has("layout.dp")) run();'),
                ("calibrate/a.cpp", 'add(rows.count(i, "batch"));'),
                ("src/program/a.cpp", 'if (modules.has(Module::kExperts)) run("moe");'),
                ("src/cost/a.cpp", 'if (name.ends_with(".json")) load();'),
                ("src/execute/a.cpp", '// name == "copy"\nreturn fmt::format("x == {}", name);'),
                ("src/execute/a.cpp", 'if (name == other.name) run("copy");')):
            self.accepts("literals", source, SPDX + code + "\n")

    def test_citations(self):
        source = "src/core/a.cpp"
        for comment, words in (
                ("see core/long.h", "no core/long.h"),
                ("docs/none.md says why", "no docs/none.md"),
                ('docs/page.md, "The second"', 'no heading "The second"'),
                ("all_lengths() adds them", "no all_lengths()")):
            self.offends("citations", source, f"// {comment}\n", words)
        for comment in ("see core/length.h", 'docs/page.md,\n// "A page: the first"', "length()",
                        "sim/clock.h", "NCCL's src/graph/search.cc", "other_library/a.h"):
            self.accepts("citations", source, f"// {comment}\n")
        page = "docs/a.md"
        for span in "src/core/long.h", "src/none", "models/*.json", "all_lengths()":
            self.offends("citations", page, f"`{span}`\n", f"no {span}")
        for span in ("src/core/length.h", "src/core/", "suites/*.json", "suites/NAME.json",
                     "src/graph/search.cc", "a/b", "length()"):
            self.accepts("citations", page, f"`{span}`\n")
        self.accepts("citations", page, "```\n`src/none`\n```\n")

    def test_words_of_comments(self):
        source = "src/core/a.cpp"
        for code in ("// Of all ranks.", "int a;  // Of all ranks", "// One. Of all ranks.",
                     "// It ends.\n// Of all ranks.", "/// Of all ranks.",
                     'run("//");  // Of all ranks',
                     "int a;  // all\n// Of all ranks."):
            found = findings("words", {source: SPDX + code + "\n"})
            self.assertEqual(1, len(found), code)
        for code in ("// The first\n// Of all ranks.", "// Often.", '"// Of all ranks."',
                     "// one of them", "int Of;"):
            self.accepts("words", source, SPDX + code + "\n")
        self.offends("words", "scripts/a.py", "x = 1  # Of all ranks.\n", "Of")
        self.offends("words", "scripts/a.py", '"""Of all ranks."""\n', "Of")
        self.accepts("words", "scripts/a.py", "x = '# Of all ranks.'\n")

    def test_first_words_of_comments(self):
        source = "src/core/a.cpp"
        for word in "The same", "Those", "What", "Where", "As", "Likewise":
            for code in (f"// {word} of it.", f"int a;  // {word} of it.", f"/// {word} of it.",
                         f"// One.\n//\n// {word} of it.", f"int a;  // all\n// {word} of it."):
                self.offends("words", source, SPDX + code + "\n", f'begins with "{word}"')
            for code in (f"// One.\n// {word} of it.", f"// One {word}.", f"// {word}ever it is.",
                         f'"// {word} of it."'):
                self.accepts("words", source, SPDX + code + "\n")
        self.offends("words", "scripts/a.py", "x = 1  # What it is.\n", "What")
        self.offends("words", "scripts/a.sh", "# SPDX\n# What it is.\n", "What")
        self.offends("words", "scripts/a.py", '"""What it is."""\n', "What")

    def test_words_of_pages(self):
        name = "docs/a.md"
        long = "a word " * 16
        self.accepts("words", name, long[:110] + "\n")
        self.offends("words", name, long[:111].strip() + "\n", "columns of prose")
        self.offends("words", name, "- " + long + "\n", "columns of prose")
        self.accepts("words", name, "| " + long + " |\n")
        self.accepts("words", name, "```\n" + long + "\n```\n")
        self.accepts("words", name, "\n    " + long + "\n    " + long + "\n")
        self.accepts("words", name, "- [a](https://a.example/" + "x" * 90 + ")\n")

    def test_ranges_of_the_web_build(self):
        for name in ("src/core/a.cpp", "src/core/a.h", "sim/a.cpp", "bindings/web/a.cpp",
                     "src/cli/plan.cpp"):
            for missing in ("ranges::for_each", "views::iota", "ranges::views::iota"):
                self.offends("web", name, SPDX + f"int a = std::{missing}(b);\n", missing)
            for known in ("ranges::sort", "ranges::less", "sort"):
                self.accepts("web", name, SPDX + f"int a = std::{known}(b);\n")
            self.accepts("web", name, SPDX + "// std::ranges::for_each\n")
        for name in ("src/model/a.cpp", "src/core/real_times.cpp", "src/cli/replay.cpp",
                     "tests/core/a_test.cpp"):
            self.accepts("web", name, SPDX + "int a = std::ranges::for_each(b);\n")
        of_a_macro = {"bindings/web/stand_ins.h": "STEPCAST_RANGE_SORT(for_each)\n",
                      "src/core/a.cpp": "int a = std::ranges::for_each(b);\n"}
        self.assertEqual([], findings("web", of_a_macro))

    def test_used_functions(self):
        header = "src/core/a.h"
        for code, words in (
                ("int lonely();", "nobody calls lonely()"),
                ("template <typename T>\nstd::vector<T> lonely(T x, int y = 1) { return {x}; }",
                 "nobody calls lonely()"),
                ("struct A {\n  int lonely() const;\n private:\n  int hidden();\n};",
                 "nobody calls lonely()"),
                ("namespace a {\nint lonely(int x) { return x ? lonely(x - 1) : 0; }\n}",
                 "nobody calls lonely()")):
            found = findings("used", {header: SPDX + code, "src/cli/a.cpp": '#include "core/a.h"'})
            self.assertEqual(1, len(found), found)
            self.assertIn(words, found[0])
        # The public face is for programs of others.
        self.accepts("used", "src/stepcast/a.h", SPDX + "int lonely();")

    def test_used_by_tests_alone(self):
        changes = {"src/core/a.h": "int tested();",
                   "src/core/a.cpp": "int tested() { return 1; }",
                   "tests/core/a_test.cpp": '#include "core/a.h"\nint main() { tested(); }',
                   "src/cli/a.cpp": '#include "core/a.h"\n'}
        self.assertEqual(["src/core/a.h:1: only tests call tested()"], findings("used", changes))
        changes["src/cli/a.cpp"] = "\n"
        self.assertEqual(2, len(findings("used", changes)))  # and no program includes the header
        exceptions = "# why\nsrc/core/a.h: a reason\nsrc/core/a.h tested: a reason\n"
        changes["tests/tidy/used_by_tests_alone.txt"] = exceptions
        self.assertEqual([], findings("used", changes))
        changes["tests/tidy/used_by_tests_alone.txt"] += "src/core/a.h other: a reason\n"
        self.assertEqual(1, len(findings("used", changes)))
        self.assertIn("needs no exception", findings("used", changes)[0])

    def test_used_by_its_own_source_alone(self):
        changes = {"src/core/a.h": "int inner();\nint outer();",
                   "src/core/a.cpp": "int inner() { return 1; }\nint outer() { return inner(); }",
                   "src/cli/a.cpp": '#include "core/a.h"\nint main() { return outer(); }'}
        found = findings("used", changes)
        self.assertEqual(1, len(found), found)
        self.assertIn("only its own .cpp calls inner()", found[0])
        changes["tests/core/a_test.cpp"] = "int main() { return inner(); }"
        self.assertEqual([], findings("used", changes))

    def test_unread_fields(self):
        def found(struct, program):
            return findings("used", {"src/core/a.h": f"struct A {{\n{struct}\n}};\n",
                                     "src/cli/a.cpp": f'#include "core/a.h"\n{program}\n'})
        for struct in ("  int lonely = 1;", "  std::array<int, 3> other{1, 2, 3}, lonely = {};",
                       "  bool any() const { return other; }\n  int other, lonely;"):
            program = "int x = A().other + A().any();"
            words = "nobody reads the field A::lonely"
            for code in (program, program + " void f(A& a) { a.lonely = 2; }"):
                self.assertEqual(1, len(found(struct, code)), found(struct, code))
                self.assertIn(words, found(struct, code)[0])
            for code in ("A().lonely", "&A::lonely", "a->lonely == 1"):
                self.assertEqual([], found(struct, f"{program} auto y = {code};"), code)
            self.assertEqual([], found(struct, program + " auto [other, lonely] = a();"))
        inside = "  bool is() const { return lonely > 0; }\n  int lonely;"
        self.assertEqual([], found(inside, "bool x = A().is();"))
        compared = "  int lonely;\n  bool operator==(const A&) const = default;"
        self.assertEqual([], found(compared, ""))
        self.assertEqual([], found("  static constexpr int lonely = 1;\n  using lone = int;", ""))

    def test_used_in_many_ways(self):
        for code in ("int x = lonely();", "auto f = &lonely;", "each(list, lonely);",
                     "int x = a::lonely<int>();", "#define LONELY() lonely()",
                     "struct B {\n  int x{lonely()};\n};", "int f() { return A().lonely(); }"):
            changes = {"src/core/a.h": "int lonely();",
                       "src/cli/a.cpp": '#include "core/a.h"\n' + code + "\n"}
            self.assertEqual([], findings("used", changes), code)

    def test_examples_of_additions(self):
        page = ("# Extending\n## A clock\n1. `clock.{h,cpp}` in `sim`: see\n"
                "   `git grep -lE 'pendulum' sim src`.\n")
        changes = {"docs/extending.md": page, "sim/clock.h": "// pendulum\n"}
        self.assertEqual([], findings("examples", changes))
        for named in ("src/core/length.h", "`src/core`", "`length`"):
            changes["src/core/length.h"] = "// a pendulum's\n"
            found = findings("examples", changes)
            self.assertEqual(1, len(found), found)
            self.assertIn("does not name src/core/length.h", found[0])
            more = {**changes, "docs/extending.md": page + "And " + named + "\n"}
            self.assertEqual("`" in named, not findings("examples", more), named)
        unknown = {"docs/extending.md": page.replace("pendulum", "spring")}
        self.assertIn("nothing in sim src has 'spring'", findings("examples", unknown)[0])
        without = {"docs/extending.md": "# Extending\n## A clock\n1. Write it.\n"}
        self.assertIn("has no example", findings("examples", without)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default="c++")
    COMPILER = parser.parse_args().compiler
    unittest.main(argv=sys.argv[:1])
