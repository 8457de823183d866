# SPDX-License-Identifier: Apache-2.0
"""Sources of the web build name no part of std::ranges that its old libc++ lacks, unless
bindings/web/stand_ins.h has it: native compilers would not notice."""

import re

STAND_INS = "bindings/web/stand_ins.h"
# Debian's emscripten has libc++ 13, with hardly an algorithm.
IN_LIBCXX_13 = {
    "advance", "begin", "bidirectional_range", "borrowed_iterator_t", "borrowed_range",
    "borrowed_subrange_t", "cbegin", "cend", "common_range", "common_view", "contiguous_range",
    "dangling", "data", "disable_sized_range", "drop_view", "empty", "empty_view",
    "enable_borrowed_range", "enable_view", "end", "equal_to", "forward_range", "greater",
    "greater_equal", "input_range", "iter_move", "iter_swap", "iterator_t", "less", "less_equal",
    "next", "not_equal_to", "output_range", "prev", "random_access_range", "range",
    "range_difference_t", "range_reference_t", "range_rvalue_reference_t", "range_size_t",
    "range_value_t", "ref_view", "sentinel_t", "size", "sized_range", "ssize", "subrange",
    "subrange_kind", "swap", "transform_view", "view", "view_base", "view_interface",
    "viewable_range"}
NAMED = re.compile(r"\bstd::(ranges::views|ranges|views)::(\w+)")
# A function of ranges, or a macro's that makes one.
STANDS_IN = re.compile(r"\b(\w+)\(Range&& range|^STEPCAST_RANGE_[A-Z]+\((\w+)\)", re.MULTILINE)


def stand_ins(tree):
    found = STANDS_IN.findall((tree.root / STAND_INS).read_text())
    return {name or of_macro for name, of_macro in found}


def values(text, name):
    """The words that CMake's set(NAME ...) gives, without quotes."""
    return re.search(rf"set\({name}\s+([^)]*?)\s*\)\n", text + "\n").group(1).split()


def is_in_web_build(tree):
    settings = (tree.root / "cmake/Web.cmake").read_text()
    left_out = values(settings, "STEPCAST_LAYERS_LEFT_OUT")
    files_left_out = re.compile(
        re.search(r'set\(STEPCAST_FILES_LEFT_OUT\s+"([^"]*)"\)', settings).group(1))
    declared = re.findall(r"stepcast_layer\(\s*(\w+)", (tree.root / "CMakeLists.txt").read_text())
    layers = set(declared) - set(left_out)
    commands = values((tree.root / "bindings/web/CMakeLists.txt").read_text(), "commands")

    def judge(file):
        name = tree.name(file)
        if name == STAND_INS:
            return False
        if name.startswith("bindings/web/"):
            return True
        if name.startswith("src/cli/"):
            return file.stem in commands
        return tree.layer_of(file) in layers and not files_left_out.fullmatch(file.stem)
    return judge


def check(tree):
    known = IN_LIBCXX_13 | stand_ins(tree)
    belongs = is_in_web_build(tree)
    for file in filter(belongs, tree.sources()):
        for number, line in enumerate(file.read_text().split("\n"), 1):
            for space, name in NAMED.findall(line.split("//")[0]):
                if space != "ranges" or name not in known:
                    yield (f"{tree.name(file)}:{number}: std::{space}::{name} is not in the web "
                           f"build's libc++; give it a stand-in in {STAND_INS}")
