# SPDX-License-Identifier: Apache-2.0
"""Files are touched in a few sources, where every error of the system is looked at."""

import re

from tidy_text import without_comments_and_text

TOUCHING = re.compile(
    r"\bstd::(?:basic_)?[io]?fstream\b|\bstd::(?:fopen|fread|fwrite|tmpfile|rename)\(|"
    r"(?<![\w.>])::(?:fopen|fread|fwrite|open|openat|creat|p?read|p?write|f(?:data)?sync|"
    r"f?truncate|rename|renameat|linkat|mkdtemp|mkstemp|unlink)\(|"
    r"\b(?:fs|filesystem)::(?:rename|copy|copy_file|resize_file)\(")
# Everybody else asks these.
MAY_TOUCH = {
    "src/core/atomic_file.cpp": "files appear whole or not at all",
    "src/core/text_file.cpp": "whole files as text",
    "src/core/input_lines.cpp": "standard input, line by line",
    "calibrate/protocol/journal.cpp": "lines that are on the disk when append() returns",
    "calibrate/protocol/system_file.cpp": "what the kernel tells of the processor",
    "calibrate/tools/main.cpp": "a program for developers",
    "src/cli/kept_results.cpp": "a folder for results that could not be written",
    "src/execute/whole_model.cpp": "weights, which are too many to be held twice",
    "src/launch/host_facts.cpp": "what the kernel tells of this host",
    "src/launch/process_group.cpp": "pipes to another process",
    "src/launch/rank_report.cpp": "standard error, without memory",
    "src/launch/scratch_folder.cpp": "a folder with a lock on it",
    "src/launch/signal_watch.cpp": "a pipe that is written in a signal handler",
}


def check(tree):
    touching = set()
    for file in tree.sources():
        name = tree.name(file)
        if tree.layer_of(file) is None:
            continue
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if not TOUCHING.search(without_comments_and_text(line)):
                continue
            touching.add(name)
            if name not in MAY_TOUCH:
                yield f"{name}:{number}: files are read by read_text_file and written by AtomicFile"
    for name in sorted(MAY_TOUCH.keys() - touching):
        if (tree.root / name).exists():
            yield f"{name}:1: touches no file any more: take it off the list of tidy_files.py"
