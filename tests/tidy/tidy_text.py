# SPDX-License-Identifier: Apache-2.0
"""Lines, lengths, licences, file names, and who may print."""

import re

from tidy_tree import HEADERS, PUBLIC, SCRIPTS, SOURCES

MAX_COLUMNS = 100
MAX_LINES = 600
MAX_TEST_LINES = 800
MAX_FUNCTION_LINES = 60
BANNED_STEMS = {"utils", "util", "helpers", "helper", "common", "manager", "impl", "misc"}

# Programs and tests print; the library does not. A failed assertion has nobody else to tell, and a
# forked child that cannot execute its program has to exit.
MAY_PRINT = ("cmake/", "src/cli/", "calibrate/tools/", "tests/", "bench/", "src/core/assert.cpp",
             "src/launch/process_group.cpp", "src/worker/main.cpp",
             "src/worker/gpu/main.cpp")
PRINTING = re.compile(
    r"\bstd::(cout|cerr|clog)\b"
    r"|(?<![\w:])(::|std::)?"
    r"(v?f?printf|f?puts|f?putc|putchar|_?exit|quick_exit|getenv|system)\s*\("
    r"|\bfmt::print(ln)?\s*\(")
FORBIDDEN = [
    (re.compile(r"\busing\s+namespace\s+(std|boost|Eigen|nlohmann)\b"), "using-directive"),
    (re.compile(r"#\s*include\s*<bits/"), "header of one compiler"),
    (re.compile(r"#\s*include\s*<iostream>"), "<iostream>: fmt prints, and only in programs"),
    (re.compile(r"\bstd::(rand|srand)\b"), "unseeded random numbers"),
]


def without_comments_and_text(line):
    """A line of C++ without string contents and // comments."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def functions(lines):
    """First and last line number of every function body that starts in column 1."""
    start = None
    for number, line in enumerate(lines, 1):
        if line[:1] not in ("", " ", "}", "#", "/") and line.rstrip().endswith(("{", "(", ",")):
            start = number
        if line.startswith("}"):
            if start is not None and line.rstrip() == "}":
                yield start, number
            start = None


def check(tree):
    for file in tree.with_suffix(*SOURCES, *SCRIPTS):
        name = tree.name(file)
        text = file.read_text()
        lines = text.split("\n")
        limit = MAX_TEST_LINES if name.startswith("tests/") else MAX_LINES
        if len(lines) - 1 > limit:
            yield f"{name}:1: {len(lines) - 1} lines, more than {limit}"
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            yield f"{name}:1: no SPDX line"
        if not text.endswith("\n"):
            yield f"{name}:{len(lines)}: no newline at the end"
        if file.suffix in HEADERS and "#pragma once" not in text:
            yield f"{name}:1: no #pragma once"
        if file.suffix in (".cpp", ".cu", ".cuh"):
            for first, last in functions(lines):
                if last - first + 1 > MAX_FUNCTION_LINES:
                    yield (f"{name}:{first}: a function of {last - first + 1} lines, more than "
                           f"{MAX_FUNCTION_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                yield f"{name}:{number}: {len(line)} columns, more than {MAX_COLUMNS}"
            if "\t" in line:
                yield f"{name}:{number}: a tab"
            if line != line.rstrip():
                yield f"{name}:{number}: blanks at the end"
            if file.suffix in SOURCES:
                code = without_comments_and_text(line)
                for pattern, why in FORBIDDEN:
                    if pattern.search(code):
                        yield f"{name}:{number}: {why}"


# The kernels of the backends stand side by side, file for file.
MIRRORED = ("src/kernels/",)
LIBRARY = ("src/", "sim/", "calibrate/")


def headers_of_one_name(tree):
    """A header's name says what is in it, so two of one name say too little."""
    seen = {}
    for file in tree.with_suffix(*HEADERS):
        name = tree.name(file)
        if not name.startswith(LIBRARY) or name.startswith(PUBLIC):
            continue
        others = seen.setdefault(file.name, [])
        clashes = [other for other in others
                   if not (name.startswith(MIRRORED) and other.startswith(MIRRORED))]
        if clashes:
            yield f"{name}:1: a header of the same name as {clashes[0]}"
        others.append(name)


NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
END_OF_NAMESPACE = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class) (\w+)(?: final)?(?: : [^;{]*)? ?\{")


def types_of_one_name(tree):
    """One program has both, and the linker takes the functions of either for both."""
    seen = {}
    for file in tree.with_suffix(*HEADERS):
        name = tree.name(file)
        if not name.startswith(LIBRARY):
            continue
        spaces = []
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := NAMESPACE.match(line):
                spaces.append(found[1])
            elif END_OF_NAMESPACE.match(line) and spaces:
                spaces.pop()
            elif found := TYPE.match(line):
                other = seen.setdefault("::".join([*spaces, found[1]]), name)
                if other != name:
                    yield f"{name}:{number}: a type of the same name as one of {other}"


def check_names(tree):
    yield from headers_of_one_name(tree)
    yield from types_of_one_name(tree)
    for file in tree.with_suffix(*SOURCES, *SCRIPTS):
        name = tree.name(file)
        if file.stem in BANNED_STEMS:
            yield f"{name}:1: a file is named after what is in it"
        if not re.fullmatch(r"[a-z0-9_]+(-[a-z0-9]+)*", file.stem):
            yield f"{name}:1: file names are snake_case"
        if name.startswith("tests/") and file.suffix == ".cpp" and "TEST" in file.read_text():
            if not file.stem.endswith("_test"):
                yield f"{name}:1: a file with tests ends in _test.cpp"


def check_output(tree):
    for file in tree.sources():
        name = tree.name(file)
        if name.startswith(MAY_PRINT):
            continue
        for number, line in enumerate(file.read_text().split("\n"), 1):
            found = PRINTING.search(without_comments_and_text(line))
            if found:
                yield f"{name}:{number}: only programs print, exit or read the environment"
