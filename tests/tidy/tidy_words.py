# SPDX-License-Identifier: Apache-2.0
"""Sentences that a newcomer reads once: how they begin in comments, and lines of pages that fit."""

import re

from tidy_docs import FENCE
from tidy_tree import SCRIPTS, SOURCES

MAX_PROSE_COLUMNS = 110
CPP_COMMENT = re.compile(r'^(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*?//+ ?(.*)')
SCRIPT_COMMENT = re.compile(r"""^(?:[^"'#]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*?#+ ?(.*)""")
DOC_STRING = re.compile(r'^\s*"""(.*)')
BEGINS_WITH_OF = re.compile(r"(?:^|[.!?:;] +)Of\b")
# They begin clauses that lean on a sentence before, and before a comment's first there is none.
LEANS = re.compile(r"(The same|Those|What|Where|As|Likewise)\b")


def comments(file):
    """(line, text, whether it goes on from the line before: both are comments alone)."""
    pattern = SCRIPT_COMMENT if file.suffix in SCRIPTS else CPP_COMMENT
    before = None
    for number, line in enumerate(file.read_text().split("\n"), 1):
        found = pattern.match(line) or (file.suffix == ".py" and DOC_STRING.match(line))
        if found:
            alone = not line[:found.start(1)].strip(" /#")
            yield number, found.group(1), alone and before == number - 1
            before = number if alone else None


def check_sentences(tree):
    for file in tree.with_suffix(*SOURCES, *SCRIPTS):
        end, is_first = ".", True  # whether the next line begins a comment or a paragraph of it
        for number, words, goes_on in comments(file):
            # A line that goes on begins a sentence only where the line before ended one.
            text = (end if goes_on and words else ".") + " " + words
            if BEGINS_WITH_OF.search(text):
                yield f'{tree.name(file)}:{number}: a sentence begins with "Of"'
            leans = LEANS.match(words)
            if leans and (is_first or not goes_on):
                yield f'{tree.name(file)}:{number}: a comment begins with "{leans[1]}"'
            is_licence = "SPDX" in text
            is_first = is_licence or not words
            end = "." if is_licence else text.rstrip()[-1]


def check_columns(tree):
    for file in tree.with_suffix(".md"):
        fenced, before = False, ""
        for number, line in enumerate(file.read_text().split("\n"), 1):
            if FENCE.match(line.strip()):
                fenced = not fenced
            is_code = fenced or line.startswith("    ") and not before.strip()
            is_table = line.lstrip(" >").startswith("|")
            longest = max(map(len, line.split()), default=0)  # a link, which nothing can break
            if (len(line) > MAX_PROSE_COLUMNS >= longest + 10 and not is_code and not is_table):
                yield (f"{tree.name(file)}:{number}: {len(line)} columns of prose, more than "
                       f"{MAX_PROSE_COLUMNS}")
            if not (is_code and not fenced):
                before = line


def check(tree):
    yield from check_sentences(tree)
    yield from check_columns(tree)
