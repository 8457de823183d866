#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a machine can check.

    tidy.py CHECK [--root FOLDER] [--compiler CXX]

prints one line per finding ("file:line: what") and exits 1 when there is any. The checks are the
functions registered in CHECKS; each takes a Tree and yields findings.
"""

import argparse
import pathlib
import sys

import tidy_citations
import tidy_data
import tidy_docs
import tidy_escapes
import tidy_examples
import tidy_files
import tidy_includes
import tidy_literals
import tidy_notebooks
import tidy_text
import tidy_used
import tidy_web
import tidy_weight
import tidy_words
from tidy_tree import Tree

CHECKS = {
    "text": tidy_text.check,
    "names": tidy_text.check_names,
    "output": tidy_text.check_output,
    "directions": tidy_includes.check_directions,
    "third_party": tidy_includes.check_third_party,
    "headers": tidy_includes.check_headers_alone,
    "links": tidy_docs.check_links,
    "commands": tidy_docs.check_commands,
    "data": tidy_data.check,
    "notebooks": tidy_notebooks.check,
    "used": tidy_used.check,
    "citations": tidy_citations.check,
    "literals": tidy_literals.check,
    "weight": tidy_weight.check,
    "words": tidy_words.check,
    "examples": tidy_examples.check,
    "escapes": tidy_escapes.check,
    "files": tidy_files.check,
    "web": tidy_web.check,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("check", choices=sorted(CHECKS))
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--compiler", default="c++", help="for the check `headers`")
    arguments = parser.parse_args()

    tree = Tree(arguments.root.resolve(), arguments.compiler)
    findings = sorted(CHECKS[arguments.check](tree))
    for finding in findings:
        print(finding)
    print(f"{arguments.check}: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
