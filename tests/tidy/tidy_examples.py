# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md names every file that an addition touches, and an example in the tree shows it.

A section holds a command, such as `git grep -lE 'looped.bfs' src`, that finds the example by its
name. Every file that it finds must be named in that section: by its path, its name, its stem, or a
folder that it lies in, between backticks. A section with numbered steps has such a command.
"""

import itertools
import re

PAGE = "docs/extending.md"
COMMAND = re.compile(r"git grep -lE '([^']+)' ([^`]+)")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
STEP = re.compile(r"^1\. ", re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def spelled_out(name):
    """`a.{h,cpp}` is two names."""
    braces = BRACES.search(name)
    if not braces:
        return [name]
    parts = braces.group(1).split(",")
    return list(itertools.chain.from_iterable(
        spelled_out(name[:braces.start()] + part + name[braces.end():]) for part in parts))


def names_it(name, path):
    file = path.rsplit("/", 1)[-1]
    return (path == name or path.endswith("/" + name) or file.split(".")[0] == name or
            ("/" in name and path.startswith(name.rstrip("/") + "/")))


def check(tree):
    page = tree.root / PAGE
    if not page.exists():
        return
    text = page.read_text()
    places = [(match.group(1), match.end()) for match in HEADING.finditer(text)]
    for (title, begin), end in zip(places, [at for _, at in places[1:]] + [len(text)]):
        section = text[begin:end]
        where = f"{PAGE}:{text.count(chr(10), 0, begin) + 1}"
        commands = COMMAND.findall(section)
        if not commands and STEP.search(section):
            yield f"{where}: '{title}' has no example in the tree (git grep -lE 'NAME' FOLDER)"
        named = [name for quoted in QUOTED.findall(COMMAND.sub("", section))
                 for name in spelled_out(quoted)]
        for pattern, folders in commands:
            found = [tree.name(file) for file in tree.files
                     if tree.name(file).startswith(tuple(f + "/" for f in folders.split()))
                     and file.suffix not in {".md", ".png"}
                     and re.search(pattern, file.read_text(errors="replace"))]
            if not found:
                yield f"{where}: nothing in {folders} has '{pattern}'"
            for path in found:
                if not any(names_it(name, path) for name in named):
                    yield f"{where}: '{title}' does not name {path}, which has '{pattern}'"
