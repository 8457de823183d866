#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small faults in formulas, one at a time, and says whether the tests notice.

    scripts/mutants.py --seed 1 --count 20      in a copy of the committed tree, build/mutants
    scripts/mutants.py --seed 1 --list          only says which faults it would plant
    scripts/mutants.py --picked                 those of scripts/picked-faults.txt instead
    scripts/mutants.py --picked --count 5 --skip 10     five of them, after the first ten

A fault is a sign, an operator, a comparison, a constant, a dropped term, clause or escape, or a
condition turned round. The seed draws places from the regions below, the same number from each. A
fault that does not compile is drawn again. One whose object code is the same is equivalent; one
that survives every test of its region is reported with its line, and the exit code is 1 when more
than --survivors do. Only what a fault is shown to is built: tests of its region, or the quick and
the long tests of the layer of a picked one.
"""

import argparse
import hashlib
import itertools
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICKED = ROOT / "scripts" / "picked-faults.txt"
PRESET = "release"  # builds every test by its name, also those that it does not run
# Layers that are no folder right below src.
FOLDERS = {"src/plan/offers/": "offers", "src/plan/advise/": "advise", "calibrate/": "calibrate"}

# Formulas are here: the files, and the tests in the order in which they are asked after that of the
# file's own layer. A test is an executable of tests/CMakeLists.txt, or a test of ctest after a
# program is built.
REGIONS = {
    "memory": (["src/memory/*.cpp", "src/predict/memory_replay.cpp", "src/program/liveness.cpp",
                "src/program/executor_workspace.cpp", "src/program/buckets.cpp"],
               ["test_memory", "test_program", "test_predict", "docs.examples",
                "test_predict_long"]),
    "cost": (["src/cost/*_cost.cpp", "src/cost/collective_model.cpp", "src/cost/link_load.cpp",
              "src/cost/mpi_collectives.cpp", "src/cost/nccl_tuner.cpp",
              "src/cost/fp8_attention.cpp"],
             ["test_cost", "test_predict", "docs.examples"]),
    "schedule": (["src/schedule/*.cpp"],
                 ["test_schedule", "test_predict", "docs.examples", "test_schedule_long"]),
    "economics": (["src/economics/*.cpp"],
                  ["test_economics", "test_offers", "docs.examples", "test_offers_long"]),
    "escaping": (["src/core/text/*.cpp", "src/report/text_table.cpp",
                  "src/report/document_form.cpp", "src/report/junit.cpp",
                  "src/report/topology_graph.cpp", "src/report/html/markup.cpp",
                  "src/recipes/kubernetes.cpp", "src/cli/session.cpp"],
                 ["test_core", "escapes.round_trips", "escapes.commands", "test_report",
                  "test_recipes", "test_recipes_long"]),
}
# Programs that the tests of ctest run.
PROGRAMS = {"docs.examples": ["stepcast"], "escapes.round_trips": ["stepcast", "escape_each"],
            "escapes.commands": ["stepcast", "escape_each"]}
# Faults that change code and no result, each with the reason.
EQUIVALENT = {
    ("src/schedule/building_block.cpp", "for (std::int64_t to = from; to <= slot; ++to) {"):
        "the slot itself is not free, for it holds the pass that moves",
    ("src/schedule/building_block.cpp", "if (slot > last && held == now) return;"):
        "one slot more is settled, to what it was",
    ("src/economics/run_simulation.cpp", "if (!(hazards_.lost_per_node >= 0)) return 0;"):
        "a run that loses nothing for a node sums zeros"}

ESCAPERS = ("terminal_line|markdown_words|markdown_line|csv_cell|xml_content|xml_attribute|"
            "dot_label|shell_word|in_comment|json_literal|toml_escapes|shown_characters")
SWAPS = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
         "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
NOT_FORMULAS = re.compile(r"^\s*(#|//|using\b|namespace\b|template\b|return failure\b|case\b)|"
                          r"STEPCAST_ASSERT|std::array<|ErrorCode|static_assert|reserve\(")


def masked(line):
    """The line with blanks for what stands in texts, characters and comments."""
    def blank(found):
        return found.group(0)[0] + " " * (len(found.group(0)) - 2) + found.group(0)[-1]

    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', blank, line)
    return line.split("//")[0]


def end_of_term(code, begin):
    """Finds the end of an operand: the next operator or bracket of its level."""
    depth = 0
    for at in range(begin, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth < 0:
                return at
        elif depth == 0 and (code[at] in ";,?" or re.match(r" (?:[-+<>:]|&&|\|\|) ", code[at:])):
            return at
    return len(code)


def closing_bracket(code, begin):
    """Finds the end of the bracket that was opened before `begin`, or of the code."""
    depth = 1
    for at in range(begin, len(code)):
        depth += (code[at] == "(") - (code[at] == ")")
        if depth == 0:
            return at
    return len(code)


def mutations_of(line):
    """(what, new line) for every fault of one line."""
    if NOT_FORMULAS.search(line):
        return
    code = masked(line)

    def changed(begin, end, text):
        return line[:begin] + text + line[end:]

    for found in re.finditer(r" (\+|-|\*|/|<=?|>=?|==|!=|&&|\|\|) ", code):
        operator, begin, end = found.group(1), found.start(1), found.end(1)
        if operator not in ("&&", "||"):
            yield f"{operator} becomes {SWAPS[operator]}", changed(begin, end, SWAPS[operator])
        if operator in ("+", "-", "&&", "||"):
            stop = end_of_term(code, end + 1)
            yield "a term is dropped", changed(found.start(), stop, "")
    for found in re.finditer(r"(?<![\w.'])(\d+)(\.\d+)?(e-?\d+)?(?![\w.'x])", code):
        value = found.group(0)
        if found.group(2) or found.group(3):
            yield f"{value} is doubled", changed(*found.span(), f"(2 * {value})")
        else:
            yield f"{value} is one more", changed(*found.span(), str(int(value) + 1))
    for found in re.finditer(r"\bif \(", code):
        stop = closing_bracket(code, found.end())
        if stop < len(code) and ";" not in code[found.end():stop]:
            condition = line[found.end():stop]
            if " = " not in condition and not re.match(r"const |auto ", condition):
                yield "a condition is turned round", changed(found.end(), stop, f"!({condition})")
    for found in re.finditer(rf"\b({ESCAPERS})\((?!std::string_view)", code):
        yield f"{found.group(1)} is dropped", changed(*found.span(), "std::string(")


def candidates(root, patterns):
    """Every fault of a region: (file, line number, what, new line), in a fixed order."""
    files = sorted({file for pattern in patterns for file in root.glob(pattern)})
    assert files, patterns
    for file in files:
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if re.match(r"(?:std::string|Written|bool) \w+\(", line):
                continue  # the head of a function
            for what, new in mutations_of(line):
                yield file.relative_to(root).as_posix(), number, what, new


def drawn(root, seed):
    """Endless faults, region by region in turn, each at most once."""
    draw = random.Random(seed)
    left = {region: draw.sample(found, len(found)) for region, found in
            ((region, list(candidates(root, patterns)))
             for region, (patterns, _) in REGIONS.items())}
    while any(left.values()):
        for region, faults in left.items():
            if faults:
                yield region, faults.pop()


def picked(root):
    """The faults that a reader picked, all of a region of their own."""
    for fault in re.findall(r"^(\S+)\n- (.+)\n\+ (.+)$", PICKED.read_text(), re.MULTILINE):
        file, old, new = fault
        lines = (root / file).read_text().split("\n")
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() == old]
        assert len(numbers) == 1, f"{file} has {len(numbers)} lines of {PICKED.name}: {old}"
        line = lines[numbers[0] - 1].replace(old, new)
        yield "picked", (file, numbers[0], f"was {old}", line)


class Copy:
    """The committed tree in a folder of its own, built once."""

    def __init__(self, folder):
        self.folder = folder
        if not folder.exists():
            self.run(["git", "worktree", "add", "--detach", str(folder), "HEAD"], ROOT)
        self.run(["git", "checkout", "-q", "--", "."], folder)  # of a run that was cut off
        self.run(["git", "checkout", "-q", "--detach", self.head()], folder)
        self.run(["cmake", "--preset", PRESET, "--log-level=WARNING"], folder)
        self.build_folder = folder / "build" / PRESET

    def head(self):
        return self.run(["git", "rev-parse", "HEAD"], ROOT).stdout.strip()

    def run(self, words, folder=None, check=True, timeout=None):
        return subprocess.run(words, cwd=folder or self.folder, check=check, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")  # a planted fault may print anything

    def builds(self, targets):
        return self.run(["cmake", "--build", "--preset", PRESET, "--target", *targets],
                        check=False).returncode == 0

    def objects(self, target):
        """The hash of every object file of a target."""
        folder = self.build_folder / "CMakeFiles" / f"{target}.dir"
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()
                for file in folder.rglob("*.o")}

    def passes(self, test):
        """Whether a test passes; the first line that says why not."""
        if test.startswith("test_"):
            words = [str(next(self.build_folder.rglob(test))), "--gtest_brief=1",
                     "--gtest_fail_fast"]
        else:
            words = ["ctest", "--preset", PRESET, "-R", f"^{re.escape(test)}$", "--no-tests=error",
                     "--output-on-failure"]
        try:
            done = self.run(words, self.folder, check=False, timeout=600)
        except subprocess.TimeoutExpired:
            return False, f"{test}: no end in 600 s"
        failed = re.search(r"^\[  FAILED  \] (\S+)|^(?:FAIL|ERROR): (\S+)", done.stdout, re.M)
        why = next((group for group in failed.groups() if group), "") if failed else ""
        return done.returncode == 0, f"{test}: {why}" if why else test


def judge(copy, region, original, fault, red):
    """The outcome of one planted fault and what decided it."""
    file, number, _, new = fault
    path = copy.folder / file
    text = path.read_text()
    lines = text.split("\n")
    lines[number - 1] = new
    path.write_text("\n".join(lines))
    try:
        layer = layer_of(file)
        if not copy.builds([layer]):
            return "not compiled", ""
        if copy.objects(layer) == original[layer]:
            return "equivalent", "the object code is the same"
        for test in tests_of(region, file):
            if test in red:
                continue
            if not copy.builds(PROGRAMS.get(test, [test])):
                return "not compiled", ""
            passed, why = copy.passes(test)
            if not passed:
                return "killed", why
        if (file, new.strip()) in EQUIVALENT:
            return "equivalent", EQUIVALENT[file, new.strip()]
        return "survived", "every test of the region passes"
    finally:
        path.write_text(text)


def layer_of(file):
    """The target that a file belongs to."""
    layer = layer_named(file)
    return "stepcast" if layer == "cli" else f"stepcast_{layer}"


def layer_named(file):
    inner = [layer for folder, layer in FOLDERS.items() if file.startswith(folder)]
    return inner[0] if inner else file.split("/")[1]


def tests_of(region, file):
    if region == "picked":
        return [f"test_{layer_named(file)}_long", f"test_{layer_named(file)}"]
    own = layer_of(file).replace("stepcast_", "test_")
    tests = REGIONS[region][1]
    return [own] * (own in tests) + [test for test in tests if test != own]


def baseline(copy, faults):
    """Builds and runs every test before a fault is planted. Returns those that fail already, and
    would kill every fault."""
    tests = list(dict.fromkeys(
        test for region, fault in faults for test in tests_of(region, fault[0])))
    targets = list(dict.fromkeys(target for test in tests for target in PROGRAMS.get(test, [test])))
    if not copy.builds(targets):
        sys.exit("mutants: the tree does not build: " + " ".join(targets))
    red = set()
    for test in tests:
        passed, why = copy.passes(test)
        if not passed:
            print(f"left out, for it fails before any fault is planted: {why}", flush=True)
            red.add(test)
    return red


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--survivors", type=int, default=1, help="as many may survive (1)")
    parser.add_argument("--picked", action="store_true", help=f"plant those of {PICKED.name}")
    parser.add_argument("--skip", type=int, default=0, help="leave out as many at the beginning")
    parser.add_argument("--list", action="store_true", help="plant nothing")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants")
    arguments = parser.parse_args()

    def faults_of(root):
        if arguments.picked:
            return itertools.islice(picked(root), arguments.skip, arguments.skip + arguments.count)
        return itertools.islice(drawn(root, arguments.seed), arguments.skip, None)

    if arguments.list:
        for region, fault in itertools.islice(faults_of(ROOT), arguments.count):
            print("{}: {}:{}: {}\n    {}".format(region, *fault[:3], fault[3].strip()))
        return 0
    copy = Copy(arguments.folder)
    shown = list(faults_of(copy.folder)) if arguments.picked else [
        (region, fault) for region, (patterns, _) in REGIONS.items()
        for fault in candidates(copy.folder, patterns)]
    red = baseline(copy, shown)
    original = {layer: copy.objects(layer) for layer in {layer_of(fault[0]) for _, fault in shown}}
    assert all(original.values()), original
    tally = {"killed": 0, "survived": 0, "equivalent": 0, "not compiled": 0}
    for region, fault in faults_of(copy.folder):
        begun = time.monotonic()
        outcome, why = judge(copy, region, original, fault, red)
        tally[outcome] += 1
        file, number, what, new = fault
        print(f"{outcome}: {region}: {file}:{number}: {what} ({why}, "
              f"{time.monotonic() - begun:.0f} s)\n    {new.strip()}", flush=True)
        if tally["killed"] + tally["survived"] >= arguments.count:
            break
    print(", ".join(f"{count} {outcome}" for outcome, count in tally.items()))
    missed = tally["survived"]
    if arguments.picked:  # each of them is a fault, and none is drawn in the place of another
        missed += tally["equivalent"] + tally["not compiled"]
    return 0 if missed <= arguments.survivors else 1


if __name__ == "__main__":
    sys.exit(main())
