# SPDX-License-Identifier: Apache-2.0
"""Names are for people: nothing that lowers, prices, runs or measures an operation may decide by
comparing the name of an operation, a buffer or an instruction with text in the source."""

import re

from tidy_tree import SOURCES

# Here no text is compared at all; there the text of files and flags is, but no name.
NO_TEXT = ("src/operation/", "src/program/", "src/execute/", "src/memory/")
NO_NAMES = ("src/predict/", "src/cost/", "src/plan/", "calibrate/")
# Files of other programs speak in names: reading them means comparing those.
FOREIGN = ("calibrate/import/",)

NAMED = re.compile(r"\b(?:\w+_)?(?:name|signature|label|operation|instruction|buffer|collective"
                   r"|kernel|order)s?"
                   r"(?:_of)?_?\b")
TEXT = r'"(?:\\.|[^"\\\n])*"'
SUBJECT = r"(?P<subject>[\w.:\[\]()>-]+)"
COMPARISONS = [
    re.compile(SUBJECT + r"\s*[=!]=\s*(?:std::string(?:_view)?[({]\s*)?(?P<text>" + TEXT + ")"),
    re.compile("(?P<text>" + TEXT + r")\s*[=!]=\s*" + SUBJECT),
    re.compile(SUBJECT + r"(?:\.|->)(?:starts_with|ends_with|contains|r?find|compare|count|has|"
               r"adapts)\(\s*(?P<text>" + TEXT + ")"),
    re.compile(r"(?<![\w.>])(?:find|count|contains)\(\s*" + SUBJECT
               + r"(?:,[^\"\n;]*)?,\s*(?P<text>" + TEXT + ")"),
]
COMMENT = re.compile(r"(" + TEXT + r")|//[^\n]*")


def compared(code, names_alone):
    """(line, text) of each comparison with text; where `names_alone`, of what is called a name."""
    for pattern in COMPARISONS:
        for found in pattern.finditer(code):
            text = found.group("text")
            is_file_ending = text.startswith('".')
            if names_alone and (is_file_ending or not NAMED.search(found.group("subject"))):
                continue
            yield code.count("\n", 0, found.start()) + 1, text


def check(tree):
    for file in tree.with_suffix(*SOURCES):
        name = tree.name(file)
        if not name.startswith((*NO_TEXT, *NO_NAMES)) or name.startswith(FOREIGN):
            continue
        code = COMMENT.sub(lambda found: found.group(1) or "", file.read_text())
        for line, text in compared(code, name.startswith(NO_NAMES)):
            yield f"{name}:{line}: a comparison with {text}: what decides is no name"
