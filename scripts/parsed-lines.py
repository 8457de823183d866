#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a compiler reads: lines of random .cpp files behind their includes, and how many
files parse each of the heaviest headers.

    scripts/parsed-lines.py [--seed N] [--files N] [--root FOLDER] [--compiler CXX]

Files are those of all .cpp files of src, calibrate, sim, tests, bench and bindings whose names come
first by a hash with the seed: the same ones as long as they are there, whatever is added. One that
does not go through the preprocessor here (without MPI, say) is passed over.
Lines are those of `CXX -E`, blank ones and markers of places included. They are told apart by where
they come from: the standard library with the C library, fmt, other libraries, and files of ours.
"""

import argparse
import collections
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "calibrate", "sim", "tests", "bench", "bindings")
MARKER = re.compile(r'^# \d+ "([^"]*)"')
TESTS = ROOT / "tests/tidy"


def place_of(path, root):
    if path.startswith("<") or not path.startswith("/") or path.startswith(f"{root}/"):
        return "ours"
    for library in ("fmt", "gtest", "nlohmann", "boost", "eigen3", "tl", "CLI"):
        if f"/{library}/" in path:
            return "fmt" if library == "fmt" else "other libraries"
    return "standard library"


def lines_of(file, root, compiler):
    """Lines by where they come from; none where the file does not go through the preprocessor."""
    command = [compiler, "-std=c++20", "-E", "-I.", "-Isrc", "-Itests",
               "-isystem", "/usr/include/eigen3", file.relative_to(root).as_posix()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    if done.returncode != 0:
        return None
    place, lines = "ours", collections.Counter()
    for line in done.stdout.split("\n"):
        marker = MARKER.match(line)
        if marker:
            place = place_of(marker.group(1), root)
        lines[place] += 1
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    root = arguments.root.resolve()

    def place(file):
        name = f"{arguments.seed} {file.relative_to(root).as_posix()}"
        return hashlib.sha256(name.encode()).hexdigest()

    files = [file for folder in FOLDERS for file in (root / folder).rglob("*.cpp")]
    files.sort(key=place)
    total, read = collections.Counter(), 0
    for file in files:
        if read == arguments.files:
            break
        lines = lines_of(file, root, arguments.compiler)
        if lines is None:
            continue
        read += 1
        total += lines
        print(f"{sum(lines.values()):8,}  {file.relative_to(root)}")
    print(f"{sum(total.values()) // read:8,}  a file on average, of these:")
    for place, count in total.most_common():
        print(f"{count // read:8,}    {place}")

    sys.path.insert(0, str(TESTS))
    import tidy_weight
    from tidy_tree import Tree
    graph = tidy_weight.IncludeGraph(Tree(root))
    print(f"Of {len(files):,} files parse")
    for _, header, most in tidy_weight.allowed(Tree(ROOT)):
        if graph.has(header):
            print(f"{len(graph.units(header)):8,}  {header}, at most {most}")


if __name__ == "__main__":
    main()
