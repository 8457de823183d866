# SPDX-License-Identifier: Apache-2.0
"""Files, headings and functions that comments and pages cite are there."""

import functools
import re

from tidy_docs import FENCE
from tidy_tree import SCRIPTS, SOURCES
from tidy_used import code_of

FOLDERS = ("src", "sim", "calibrate", "tests", "bench", "docs", "scripts", "cmake", "models",
           "topologies", "suites", "prices", "examples", "notebooks")
OURS = r"(?:h|cpp|cuh|cu|py|sh|cmake|md|json|ipynb)"
CODE_SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:" + "|".join(FOLDERS) + r")/[\w./*-]*")
FOREIGN = re.compile(r"\.(?!" + OURS + r"\b)\w+$")  # of a library that is spoken of
COMMENT = re.compile(r"(?://|#)(.*)")
HEADER = re.compile(r"\b[a-z][\w/]*/\w+\.(?:h|cuh)\b")
PAGE = re.compile(r"(docs/[\w/.-]+\.md)(?:, \"([^\"]+)\")?")
FUNCTION = re.compile(r"\b([a-z]\w*_\w+)\(\)")


class Known:
    """Knows what can be cited."""

    def __init__(self, tree):
        self.tree = tree
        self.names = {tree.name(file) for file in tree.files}
        self.folders = {parent.as_posix() for file in tree.files
                        for parent in file.relative_to(tree.root).parents}
        self.words = set()
        for file in tree.with_suffix(*SOURCES, *SCRIPTS, ".ipynb"):
            text = file.read_text()
            if file.suffix in SOURCES:
                text = code_of(text)
            self.words.update(re.findall(r"\w+", text))

    def has_path(self, path):
        """A file or folder; NAME stands for any name, as * does."""
        pattern = re.escape(path.rstrip("/")).replace(r"\*", "[^/]*")
        pattern = re.compile(re.sub(r"[A-Z]{3,}", "[^/]*", pattern))
        return any(pattern.fullmatch(name) for name in self.names | self.folders)

    def has_header(self, path):
        """Takes a path as an include names it, or from the root of the repository."""
        return any(f"{root}{path}" in self.names for root in ("", "src/", "tests/", "calibrate/"))

    @functools.cache
    def headings(self, page):
        text = (self.tree.root / page).read_text()
        return {heading.replace("`", "").strip().lower()
                for heading in re.findall(r"^#+ +(.*)$", text, re.MULTILINE)}


def comments(file):
    """(line, text) of each block of comments, its lines joined."""
    begin, block = 0, []
    for number, line in enumerate([*file.read_text().split("\n"), ""], 1):
        found = COMMENT.search(line)
        if found:
            begin = begin if block else number
            block.append(found.group(1).strip())
        elif block:
            yield begin, " ".join(block)
            block = []


def check_comments(tree, known):
    for file in tree.with_suffix(*SOURCES):
        for line, text in comments(file):
            where = f"{tree.name(file)}:{line}"
            for header in HEADER.findall(text):
                layer = header.split("/")[0]
                if f"src/{layer}" in known.folders | {f"src/{name}" for name in FOLDERS}:
                    if not known.has_header(header):
                        yield f"{where}: there is no {header}"
            for page, heading in PAGE.findall(text):
                if page not in known.names:
                    yield f"{where}: there is no {page}"
                elif heading and heading.lower() not in known.headings(page):
                    yield f"{where}: {page} has no heading \"{heading}\""
            for function in FUNCTION.findall(text):
                if function not in known.words:
                    yield f"{where}: there is no {function}()"


def check_pages(tree, known):
    for file in tree.with_suffix(".md"):
        fenced = False
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if FENCE.match(line.strip()):
                fenced = not fenced
            for span in [] if fenced else CODE_SPAN.findall(line):
                where = f"{tree.name(file)}:{number}"
                if PATH.fullmatch(span) and not FOREIGN.search(span) and not known.has_path(span):
                    yield f"{where}: there is no {span}"
                function = FUNCTION.fullmatch(span)
                if function and function.group(1) not in known.words:
                    yield f"{where}: there is no {span}"


def check(tree):
    known = Known(tree)
    yield from check_comments(tree, known)
    yield from check_pages(tree, known)
