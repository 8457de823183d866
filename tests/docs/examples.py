#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of the documents and compares what they print with what stands there.

    examples.py --bin FOLDER DOCUMENT...            exits 1 when an output differs
    examples.py --bin FOLDER --update DOCUMENT...   writes the outputs into the documents

An example is a fenced block marked `console`: lines that start with "$ " are commands, the lines
below each are its output, both streams together. A line "..." stands for any number of lines.
Markdown that a command prints stands between "<!-- output of: COMMAND -->" and
"<!-- end of output -->". The commands of one document run one after the other in one empty folder,
with FOLDER on the PATH.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console\n(?P<block>.*?)^```$"
                   r"|^<!-- output of: (?P<command>.*?) -->\n(?P<output>.*?)"
                   r"^<!-- end of output -->$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(?P<end>\w+)")
TIMEOUT_S = 300


def commands(block):
    """(command, expected output) of a block; a command goes on after a backslash, and through a
    here-document to its end."""
    found = []
    continued = False
    here_end = None
    for line in block.splitlines():
        if here_end or continued:
            found[-1][0].append(line)
            if line == here_end:
                here_end = None
                continue
        elif line.startswith("$ "):
            found.append(([line[2:]], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"output before the first command: {line}")
        here = HERE_DOCUMENT.search(line) if line.startswith("$ ") else None
        if here:
            here_end = here.group("end")
        continued = line.endswith("\\") and not found[-1][1]
    return found


def matches(expected, actual):
    lines = (r"(.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch("".join(lines), "".join(line + "\n" for line in actual)) is not None


def run(command, folder, path):
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
                   "NO_COLOR": "1", "COLUMNS": "100",
                   "SOURCE_DATE_EPOCH": "1779278400"}  # 2026-05-20: ages of prices follow it
    done = subprocess.run(["bash", "-c", "\n".join(command)], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT_S, check=False)
    return [line.rstrip() for line in done.stdout.strip("\n").split("\n")] if done.stdout else []


def check_document(document, path, update):
    """Number of examples, and of those whose output differs."""
    text = document.read_text()
    examples = differing = 0
    with tempfile.TemporaryDirectory() as folder:

        def output_of(command, expected):
            """Returns what is to stand below the command; counts, and reports a difference."""
            nonlocal examples, differing
            examples += 1
            actual = run(command, folder, path)
            if matches(expected, actual):
                return expected
            differing += 1
            if not update:
                print(f"{document}: $ {command[0]}")
                print("\n".join(difflib.unified_diff(
                    expected, actual, "document", "program", lineterm="")))
            return actual

        def run_block(block):
            if block.group("command"):
                command = block.group("command")
                output = output_of([command], block.group("output").strip("\n").splitlines())
                return "\n".join([f"<!-- output of: {command} -->", "", *output, "",
                                  "<!-- end of output -->"])
            lines = []
            for command, expected in commands(block.group("block")):
                output = output_of(command, expected)
                lines += ["$ " + command[0], *command[1:], *output]
            return "\n".join(["```console", *lines, "```"])

        updated = BLOCK.sub(run_block, text)
    if update and updated != text:
        document.write_text(updated)
    return examples, differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where stepcast lies")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    for document in arguments.documents:
        examples, differing = check_document(document, arguments.bin.resolve(), arguments.update)
        if examples:
            print(f"{document}: {examples} examples, {differing} "
                  f"{'updated' if arguments.update else 'differ'}")
        failed |= differing > 0
    return 1 if failed and not arguments.update else 0


if __name__ == "__main__":
    sys.exit(main())
