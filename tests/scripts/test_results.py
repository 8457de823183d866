#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which tests took longest and how many cases ran, and names the skipped ones that nothing
explains.

    test_results.py --log LOG --results FOLDER

LOG is what ctest printed, FOLDER has what executables of GoogleTest wrote of their cases, a file
for each shard (cmake/Tests.cmake). Exits 1 when a test or case was skipped that
tests/may_be_skipped.txt does not explain, or when a shard ran no case.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree

REASONS = pathlib.Path(__file__).resolve().parents[1] / "may_be_skipped.txt"
SKIPPED = re.compile(r"\s*\d+ - (.+) \((?:Skipped|Not Run|Disabled)\)")
TOOK = re.compile(r"\s*\d+/\d+ Test +#\d+: (\S+) .* ([0-9.]+) sec.*")
LONGEST = 15


def reasons(text):
    """Regular expressions of whole names, in the order of the file."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [re.compile(line.split(": ", 1)[0]) for line in lines]


def unexplained(names, explained):
    return [name for name in names if not any(known.fullmatch(name) for known in explained)]


def cases_of(folder):
    """Executable.Suite.Case, seconds and whether it was skipped, of every case; by file."""
    out = {}
    for file in sorted(folder.glob("*.xml")):
        executable = file.name.split(".")[0]
        cases = xml.etree.ElementTree.parse(file).getroot().iter("testcase")
        out[file.name] = [
            (f"{executable}.{case.get('classname')}.{case.get('name')}", float(case.get("time")),
             case.get("result") == "skipped" or case.find("skipped") is not None)
            for case in cases if case.get("result") in ("completed", "skipped")]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--log", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    given = parser.parse_args()
    log = given.log.read_text(errors="replace").splitlines()
    files = cases_of(given.results)
    cases = [case for of_file in files.values() for case in of_file]

    shards = {name.removesuffix(".xml") for name in files}
    tests = [(match[1], float(match[2])) for match in map(TOOK.match, log) if match]
    took = [(name, seconds) for name, seconds in tests if name not in shards]
    took += [(name, seconds) for name, seconds, _ in cases]
    for name, seconds in sorted(took, key=lambda one: -one[1])[:LONGEST]:
        print(f"{seconds:7.1f} s  {name}")
    print(f"{len(cases)} cases of {len(shards)} shards, and {len(took) - len(cases)} other tests")

    skipped = [match[1] for match in map(SKIPPED.fullmatch, log) if match]
    skipped += [name for name, _, is_skipped in cases if is_skipped]
    wrong = [f"skipped, and tests/{REASONS.name} does not say why: {name}"
             for name in unexplained(skipped, reasons(REASONS.read_text()))]
    wrong += [f"a shard without a case: {name}" for name, of_file in files.items() if not of_file]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
