#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names the tests that ctest skipped and that tests/may_be_skipped.txt does not explain.

    unexplained_skips.py LOG

LOG is what ctest printed. Exits 1 when there is such a test.
"""

import argparse
import pathlib
import re
import sys

REASONS = pathlib.Path(__file__).resolve().parents[1] / "may_be_skipped.txt"
SKIPPED = re.compile(r"\s*\d+ - (.+) \((?:Skipped|Not Run|Disabled)\)")


def reasons(text):
    """Regular expressions of whole names, in the order of the file."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [re.compile(line.split(": ", 1)[0]) for line in lines]


def unexplained(log, explained):
    skipped = [match[1] for match in map(SKIPPED.fullmatch, log.splitlines()) if match]
    return [name for name in skipped if not any(known.fullmatch(name) for known in explained)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("log", type=pathlib.Path)
    names = unexplained(parser.parse_args().log.read_text(errors="replace"),
                        reasons(REASONS.read_text()))
    for name in names:
        print(f"skipped, and tests/{REASONS.name} does not say why: {name}", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
